"""Messages that may contain untrusted text from a hub, a file or the visitor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import streamlit as st

from pretrained import WeightsMissing
from pretrained.sources import FilesChanged, UnusableModel
from serving.limits import OverLimit

MAX_CHARACTERS = 300


class PageEnd(Exception):
    """Raised to end a page early."""


def end_page() -> NoReturn:
    """End the page here. Unlike `st.stop`, this lets the frame continue below it."""
    raise PageEnd


@contextmanager
def page_guard() -> Iterator[None]:
    """Run a page or part of one, until `end_page` or an error that is shown as a message.

    On any page, a loaded model may be missing or unusable by now, or its numbers may overflow.
    """
    try:
        yield
    except PageEnd:
        pass
    except (FilesChanged, UnusableModel, WeightsMissing, OverLimit) as error:
        show_problem(error)
    except ValueError as error:
        from attention_core.checks import NotFiniteError  # here, so that pages open without torch

        if not isinstance(error, NotFiniteError):
            raise
        show_problem(error)


def show_problem(error: Exception | str, *, icon: str = ":material/edit:") -> None:
    """Show a message as a warning, as plain text, cut off after `MAX_CHARACTERS`."""
    st.warning(escape_markdown(str(error)), icon=icon)


def escape_markdown(message: str) -> str:
    """Escape a message as Markdown, so that images, links and formatting in it have no effect."""
    if len(message) > MAX_CHARACTERS:
        message = message[: MAX_CHARACTERS - 1] + "…"
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(message.split()))
    # URLs become links even when escaped, so break them with a zero-width space
    return escaped.replace(r"\:\/\/", "\\:\u200b\\/\\/").replace(r"www\.", "www\u200b\\.")
