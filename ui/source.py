"""Show the line of code that computed what a page shows, read from the module itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

_ROOT = Path(__file__).parents[1]


def show(function: Callable[..., Any]) -> None:
    """The source of a function, with a copy button, its file and its line numbers."""
    lines, first = inspect.getsourcelines(function)
    file = Path(inspect.getsourcefile(function) or "").relative_to(_ROOT)
    st.caption(f"`{file}`, lines {first} to {first + len(lines) - 1}")
    st.code("".join(lines), language="python")


def attend() -> None:
    """The function that computes every attention weight on the site."""
    from attention_core import attend

    show(attend)


def stream() -> None:
    """The loop that generates, one step a token."""
    from attention_core import generation

    show(generation._steps)
