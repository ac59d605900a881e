"""The examples in docstrings run and print what they say."""

import doctest
import importlib

import pytest

from pretrained import sources

MODULES = ("pretrained.load", "pretrained.export")


@pytest.mark.usefixtures("bundled_weights")
@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    assert sources.TRAINED_HERE.is_dir()
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted
    assert results.failed == 0
