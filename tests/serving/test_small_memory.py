"""Test a machine with 2.7 GB: both bundled models run, and a larger one is rejected."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serving.memory import VARIABLE
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.hollow_models import hollow_model

ROOT = Path(__file__).resolve().parents[2]
GIGABYTES = 2.7

# Run passes of 200 words and pages, in a process with nothing else in memory.
VISIT = f"""
import json
from pathlib import Path

from serving import cache, models, runs
from tests.helpers.apptest import FRAME, MODELS, messages, open_page
from streamlit.testing.v1 import AppTest

def opened(view, **query):
    site = open_page(AppTest.from_file(FRAME, default_timeout=60), view, **query)
    assert not site.exception, site.exception
    return messages(site)

names = [{ENCODER!r}, {DECODER!r}]
shapes = [list(runs.run(name, "one two " * 100).weights.shape[:2]) for name in names]
said = [opened("pages/compare/heads/page.py", heads_model="too-large"), opened(MODELS)]
status = Path("/proc/self/status").read_text().split()
print(json.dumps({{
    "said": said,
    "shapes": shapes,
    "models": models.by_key.n_cached,
    "total": cache.TOTAL_BYTES,
    "room": models.MODEL_BUDGET_BYTES,
    "most": int(status[status.index("VmHWM:") + 1]) * 1024,
}}))
"""


@pytest.mark.usefixtures("bundled_weights")
def test_both_bundled_models_run_and_a_larger_one_is_rejected(tmp_path: Path):
    hollow_model(tmp_path / "too-large", 355_000_000)
    environment = {
        **os.environ,
        VARIABLE: str(GIGABYTES),
        "ATTENTION_LAB_MODELS": str(tmp_path),
        "ATTENTION_LAB_WARMUP": "off",
        "PYTHONPATH": str(ROOT),
    }
    result = subprocess.run(
        [sys.executable, "-c", VISIT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["total"] == int(0.6 * GIGABYTES * 1e9)
    assert report["room"] == int(0.75 * report["total"])
    assert report["most"] < GIGABYTES * 1e9
    assert report["models"] == 2
    assert report["shapes"] == [[6, 12], [30, 9]]
    for page in report["said"]:
        [message] = page
        assert "too-large takes 1.42 GB of memory in float32" in message
        assert "1.22 GB" in message  # 0.75 of 0.6 of 2.7
