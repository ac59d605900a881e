"""Entry point of the site (`streamlit run app.py`): `ui/frame/frame.py` wrapped in `web/`.

`web/` is the ASGI layer: security headers, allowed hosts, the style sheet, limits, health checks
and metrics.

The main script is in `ui/frame` because it can't be next to `pages/`: Streamlit would treat that
folder as an old-style multipage app, and the first deep link after a start would show "Page not
found".
"""

# ruff: noqa: E402
from __future__ import annotations

from pretrained import settings

settings.check_or_exit()  # must come first, because modules read their settings on import

import os
import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from serving import interpreter, log, metrics, urls
from ui.frame import page_assets
from ui.frame.glossary import entries
from ui.frame.sections import TITLES
from ui.streamlit_patches import server
from web import health, metrics_endpoint, redirects
from web.hosts import AllowedHosts
from web.html_insert import HtmlInsert
from web.limits import Limits
from web.security_headers import SecurityHeaders, security_headers

interpreter.prepare()
log.start()
metrics.register_pages(map(urls.page_path, TITLES))
FRAME = Path(os.path.abspath(__file__)).parent / "ui" / "frame" / "frame.py"

# Streamlit adds the script's folder to sys.path for each page run and removes it afterwards, unless
# it was there already. If another thread imports a module during the removal, it can skip an entry
# of the list and miss installed packages. Adding the folder permanently avoids this.
if str(FRAME.parent) not in sys.path:
    sys.path.append(str(FRAME.parent))

server.prepare()
headers = security_headers(page_assets.inline_scripts(), settings.EMBED.read())
app = st.App(
    FRAME,
    lifespan=server.lifespan,
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
    on_script_error=metrics.count_script_error,
)
