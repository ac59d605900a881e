"""Test the model server's log in a separate process, because it changes Python's logging."""

import json
import os
import subprocess
import sys

PROGRAM = """
import logging
import serving.backend.service
try:
    raise ValueError("a text of a visitor")
except ValueError:
    logging.getLogger("serving.backend.service").exception("an answer failed")
"""


def test_model_server_log_contains_no_visitor_data():
    environment = {**os.environ, "ATTENTION_LAB_LOG": "json"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    [line] = run.stderr.splitlines()
    assert json.loads(line)["kind"] == "ValueError"
    assert "visitor" not in run.stderr
