"""Test the assembled app.py in a separate process, because it changes its process's settings."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SERVED = """
import sys

import requests
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner.exec_code import modified_sys_path

import app
from serving import metrics
from serving.limits import MESSAGE_BURST

STREAM, ORIGIN = "/_stcore/stream", {"origin": "http://127.0.0.1"}
POLICY = "content-security-policy"

visitor = TestClient(app.app, "http://127.0.0.1", client=("127.0.0.1", 4321))
with visitor:
    print(*(visitor.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")))
    with visitor.websocket_connect(STREAM, headers=ORIGIN):
        print("attention_lab_open_visits 1.0" in visitor.get("/metrics").text)
    # the page itself and Streamlit's static files are served
    answer = visitor.get("/", headers={"accept": "text/html"})
    print(*(policy.partition(" ")[0] for policy in answer.headers.get_list(POLICY)))
    page = answer.text
    print(visitor.get(page.partition('src="./')[2].partition('"')[0]).status_code)
    # links to moved pages redirect
    moved = visitor.get("/journey?journey_text=a+b", follow_redirects=False)
    print(moved.status_code, moved.headers["location"])
    # another site's page is rejected without a request to the internet
    requested = []
    requests.get = lambda url, **options: requested.append(url)
    try:
        with visitor.websocket_connect(STREAM, headers={"origin": "http://other.example"}):
            print("let in")
    except WebSocketDisconnect:
        print("turned away", requested)
    # a burst of 2,000 messages reaches Streamlit at the rate limit
    received = []
    Runtime.handle_backmsg = lambda *of, **named: received.append(1)
    with visitor.websocket_connect(STREAM, headers=ORIGIN) as flood:
        for _ in range(2_000):
            flood.send_bytes(BackMsg(app_heartbeat=True).SerializeToString())
        while len(received) < MESSAGE_BURST:
            visitor.get("/healthz")
        for _ in range(20):  # without a limit all of them would have arrived by now
            visitor.get("/healthz")
        print(len(received) < 1_000)
print(*map(metrics.page_name, ("", "one-pass", "what-is-recomputed", "one_pass", "secret")))
print(app.app._on_script_error is metrics.count_script_error)

# a page run doesn't change the import path, because other threads import modules at the same time
path = list(sys.path)
with modified_sys_path(str(app.app._resolve_script_path())):
    print(sys.path == path)
"""


def test_site_is_served_with_health_and_metrics_endpoints(tmp_path: Path):
    result = subprocess.run(
        [sys.executable, "-c", SERVED], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={"ATTENTION_LAB_WARMUP": "off", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert result.stdout.splitlines() == [
        "200 200 200",
        "True",
        "default-src",
        "200",
        "308 one-pass?one_pass_text=a+b",
        "turned away []",
        "True",
        "home one-pass what-is-recomputed other other",
        "True",
        "True",
    ], result.stderr
