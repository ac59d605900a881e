"""The site: `streamlit run app.py`. The frame, `ui/frame/frame.py`, and what goes out around it.

Every page and file has security headers, every document that a browser opens has our style sheet.
Whoever runs the site asks /healthz, /readyz and /metrics (`serving/status.py`).

The frame is a script of its own, in a folder without `pages/`: beside the main script Streamlit
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
from streamlit.proto.BackMsg_pb2 import BackMsg

from serving import doors, interpreter, log, metrics, pace, parameters, protocol, status
from serving.glossary import entries
from serving.security_headers import SecurityHeaders, security_headers
from ui.around import no_options
from ui.frame import moved
from ui.frame.first_answer import FirstAnswer, inline_scripts
from ui.frame.sections import TITLES

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
app = st.App(
    FRAME,
    lifespan=no_options.life,
    routes=[*status.routes("ui.charts.show"), entries.route(TITLES), *moved.routes()],
    middleware=[
        Middleware(doors.Doors, doors.hosts(), doors.frame_ancestors()),
        Middleware(SecurityHeaders, security_headers(inline_scripts())),
        Middleware(FirstAnswer),
        Middleware(pace.Paced),
        Middleware(status.Watched),
        Middleware(protocol.Needed, BackMsg),
    ],
    on_script_error=metrics.error_in_script,
)
