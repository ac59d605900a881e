"""The site, started by `streamlit run app.py`: the script `ui/frame/frame.py` inside `web/`.

`web/` is the ASGI side: security headers, host names, our style sheet, limits, health and metrics.

The frame is a script of its own, in a folder without `pages/`: next to the main script Streamlit
takes a folder of that name for its older kind of multipage app, and the first deep link after a
start would say "Page not found".
"""

# ruff: noqa: E402
from __future__ import annotations

from pretrained import settings

settings.check_or_exit()  # first of all: modules read variables when they are imported

import os
import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from serving import interpreter, log, metrics, parameters
from ui.around import no_options
from ui.frame import page_assets
from ui.frame.glossary import entries
from ui.frame.sections import TITLES
from web import health, metrics_endpoint, redirects
from web.hosts import AllowedHosts
from web.html_insert import HtmlInsert
from web.limits import Limits
from web.security_headers import SecurityHeaders, security_headers

interpreter.prepare()
log.start()
metrics.know_pages(map(parameters.address, TITLES))
FRAME = Path(os.path.abspath(__file__)).parent / "ui" / "frame" / "frame.py"

# Streamlit puts the script's folder on the import path for each run of a page, and takes it away
# behind it, unless it is there. A thread that looks for a module just then skips an entry of the
# list: packages that are installed were not found, and a page said that no model was here.
if str(FRAME.parent) not in sys.path:
    sys.path.append(str(FRAME.parent))

no_options.prepare()
headers = security_headers(page_assets.inline_scripts(), settings.EMBED.read())
app = st.App(
    FRAME,
    lifespan=no_options.life,
    routes=[
        *health.routes("ui.charts.show"),
        metrics_endpoint.route(),
        entries.route(TITLES),
        *redirects.routes(),
    ],
    middleware=[
        Middleware(SecurityHeaders, headers),
        Middleware(AllowedHosts, settings.HOSTS.read()),
        Middleware(HtmlInsert, page_assets.HTML),
        Middleware(Limits),
        Middleware(metrics_endpoint.RequestMetrics),
    ],
    on_script_error=metrics.error_in_script,
)
