"""Messages to the visitor that may hold text of others: a hub's, a file's, the visitor's own."""

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


class PageEnds(Exception):
    """A page has no more to show."""


def end_page() -> NoReturn:
    """End a page here. The frame goes on below it, as it could not after `st.stop`."""
    raise PageEnds


@contextmanager
def page() -> Iterator[None]:
    """Run a page or a part of one; it ends at `end_page`, or with a message about its model.

    Any page can meet a model that was open and can't be loaded again, or whose numbers overflow.
    """
    try:
        yield
    except PageEnds:
        pass
    except (FilesChanged, UnusableModel, WeightsMissing, OverLimit) as error:
        problem(error)
    except ValueError as error:
        from attention_core.checks import NotFiniteError  # a page opens without torch

        if not isinstance(error, NotFiniteError):
            raise
        problem(error)


def problem(error: Exception | str, *, icon: str = ":material/edit:") -> None:
    """A warning that shows the message as text, cut to `MAX_CHARACTERS`, whatever is in it."""
    st.warning(as_text(str(error)), icon=icon)


def as_text(message: str) -> str:
    """Markdown that reads as `message`: no image, link or formatting of it takes effect."""
    if len(message) > MAX_CHARACTERS:
        message = message[: MAX_CHARACTERS - 1] + "…"
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(message.split()))
    # addresses become links even when escaped, unless something stands in them
    return escaped.replace(r"\:\/\/", "\\:\u200b\\/\\/").replace(r"www\.", "www\u200b\\.")
