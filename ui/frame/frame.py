"""The frame around every page: navigation, colors, the warm-up, and the link to the next page.

`app.py` passes this script to Streamlit. Its folder is on the import path, so no module in it may
have the name of a standard module, such as `site`.
"""

from pathlib import Path

import streamlit as st

from pretrained import settings
from serving import compute, metrics, models, warmup
from serving.backend.router import outage_notice
from ui.canvas.component import picture_caption
from ui.frame import next_page, sections, teaching
from ui.widgets import messages
from ui.widgets.visit import open_page

FAVICON = str(Path(__file__).with_name("favicon.png"))

# before the navigation, which would otherwise fetch the page's icon from another server
st.set_page_config(page_icon=FAVICON, layout="wide")
pages = sections.pages()
current = st.navigation(pages)
st.set_page_config(page_title=sections.tab_title(current), page_icon=FAVICON)
open_page(current.url_path)
picture_caption().clear()  # the fields of the previous page
if notice := outage_notice():
    st.warning(notice, icon=":material/dns:")
if current.url_path:  # every page except Home, which shows its text before it needs the core
    warmup.import_core()
try:
    waiting = compute.page_run(lambda: st.toast(compute.WAITING, icon=":material/groups:"))
    with (
        waiting,
        models.cached_lookups(),
        metrics.track_page_run(current.url_path),
        messages.page_guard(),
    ):
        current.run()
finally:  # runs even if the page fails
    # Altair takes a second to import; started earlier, it would slow down the first page
    warmup.start("ui.charts.show")
    st.html(teaching.row(picture_caption(), settings.EMBED.read()))
    next_page.next_page(pages.values(), current)
