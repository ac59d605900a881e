"""What the model server logs, in a process of its own: the log changes Python's logging."""

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


def test_nothing_of_a_visitor_is_in_the_log_of_a_model_server():
    told = {**os.environ, "ATTENTION_LAB_LOG": "json"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=told, capture_output=True, text=True, check=True
    )
    [line] = run.stderr.splitlines()
    assert json.loads(line)["kind"] == "ValueError"
    assert "visitor" not in run.stderr
