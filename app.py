"""The frame of the site: the pages, their sections, and what every page shares.

The files lie in `views/`, not `pages/`: Streamlit takes a folder of that name beside the entry
point for its older kind of multipage app, and answers the first link to a page after a start with
"Page not found".
"""

import streamlit as st

from ui import warmup

PAGES = {
    "": [
        st.Page(
            "views/start/home.py",
            title="Attention Lab",
            icon=":material/home:",
            url_path="home",
            default=True,
        ),
    ],
    "Compare": [
        st.Page(
            "views/compare/heads.py",
            title="Heads",
            icon=":material/grid_on:",
            url_path="heads",
        ),
    ],
    "Generate": [
        st.Page(
            "views/generate/generate.py",
            title="Generate",
            icon=":material/bolt:",
            url_path="generate",
        ),
    ],
    "Weights": [
        st.Page(
            "views/models/models.py",
            title="Models",
            icon=":material/database:",
            url_path="models",
        ),
    ],
}

st.set_page_config(page_title="Attention Lab", page_icon=":material/grid_on:", layout="wide")
page = st.navigation(PAGES)
warmup.start()
page.run()
