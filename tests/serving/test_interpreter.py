"""Test process settings in a separate process, because the test suite has its own."""

import os
import subprocess
import sys

import pytest

from serving.limits import GC_THRESHOLD, SWITCH_SECONDS

PROGRAM = """
import gc, os, resource, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
from serving import interpreter
interpreter.prepare()
print(gc.get_threshold()[0], sys.getswitchinterval(), os.environ["GOMP_SPINCOUNT"])
print("torch" in sys.modules)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("configured", "spins"), [(None, "1000"), ("7", "7")])
def test_site_configures_its_process_before_importing_torch(configured: str | None, spins: str):
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    if configured is not None:  # the operator's settings are kept
        environment["GOMP_SPINCOUNT"] = configured
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    collection, switch, spin_count, torch_is_there, files, most_files = run.stdout.split()
    assert int(collection) == GC_THRESHOLD
    assert float(switch) == pytest.approx(SWITCH_SECONDS)
    assert (spin_count, torch_is_there) == (spins, "False")
    assert files == most_files
