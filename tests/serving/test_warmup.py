"""Test the warm-up in fresh processes, because everything is already imported here."""

import subprocess
import sys

# Threads import the core and parts of it at the same time. Python fails some of these imports
# unless the whole core is imported first.
IMPORTS = """
import importlib, threading

import torch  # so that all threads import the core itself at the same time

from serving import warmup

MODULES = ["attention_core", "pages.kv_cache.variants.experiment.forms",
           "attention_core.model.variants", "attention_core.analysis.ablation",
           "attention_core.costs.formulas", "pages.learn.why_attention.experiment"]
together = threading.Barrier(len(MODULES))

def visit(module):
    together.wait()
    warmup.import_core()
    importlib.import_module(module)

failures = []
threading.excepthook = lambda failure: failures.append(failure.exc_type.__name__)
threads = [threading.Thread(target=visit, args=(module,)) for module in MODULES]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failures)
"""

ONE_THREAD = """
from serving import models, warmup

models.load_preferred = lambda: print("loaded") or []
first, second = warmup.start("json"), warmup.start()
first.join()
print(first is second)
"""


def output(program: str) -> str:
    """Return the output of a program in a separate process."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_concurrent_first_visitors():
    assert output(IMPORTS) == "\n"


def test_models_are_loaded_by_one_thread():
    assert output(ONE_THREAD) == "loaded\nTrue\n"
