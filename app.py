"""The frame of the site: the pages, their sections, and what every page shares.

The files lie in `views/`, not `pages/`: Streamlit takes a folder of that name beside the entry
point for its older kind of multipage app, and answers the first link to a page after a start with
"Page not found".
"""

import os

import streamlit as st

from ui import warmup

# GNU OpenMP reads this when torch is first imported, later. By default its threads spin for long
# at every barrier: beside one other busy process, generation on two cores becomes 20 to 100 times
# slower. With short spins it takes twice the time then, and hardly more when the machine is idle.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

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

st.set_page_config(page_title="Attention Lab", page_icon="ui/favicon.png", layout="wide")
page = st.navigation(PAGES)
warmup.start()
page.run()
