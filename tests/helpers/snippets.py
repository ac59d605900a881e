"""Run the Python that a page gives away."""

from typing import Any

import pytest


def executed(code: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """What a snippet leaves behind and prints."""
    code.encode("ascii")  # nothing that could turn the reading around
    names: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), names)
    return names, capsys.readouterr().out
