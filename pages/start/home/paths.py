"""Three ways through the site, for whoever does not want to read all of it."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.frame import sections

TITLE = "Three paths: to learn it, to teach it, to look under the hood"


@dataclass(frozen=True)
class Path:
    """Pages in an order, for somebody; each with what to do on it.

    steps: folder of the page ("learn/ladder") and one sentence.
    """

    title: str
    steps: tuple[tuple[str, str], ...]


PATHS = (
    Path(
        "I learn it: an evening",
        (
            ("learn/journey", "See the whole way of one token first."),
            ("learn/tokens", "What a model reads instead of words."),
            ("learn/why_attention", "The problem that attention solves."),
            ("learn/similarity", "The one operation it is built on."),
            ("learn/ladder", "Build it in seven steps, by hand."),
            ("learn/why_several_heads", "Why one map is not enough."),
            ("learn/block", "What stands around attention in a layer."),
            ("kv_cache/what_is_recomputed", "Why a model keeps keys and values."),
        ),
    ),
    Path(
        "I teach it: one lesson of 45 minutes",
        (
            ("start/one_pass", "Open with the class's own sentence, full screen."),
            ("learn/ladder", "Two rungs on the blackboard, the rest here."),
            ("learn/scaling", "Let them guess before you move the slider."),
            ("learn/masking", "What a leak does to the next token."),
            ("compare/heads", "Everybody looks for a head that does something."),
            ("learn/shapes", "Homework: the questions at its end."),
        ),
    ),
    Path(
        "I build with it: five minutes",
        (
            ("start/one_pass", "Every tensor of a pass, with its line of code."),
            ("compare/ablate", "Which heads a prediction needs."),
            ("kv_cache/inside_the_cache", "What a cache holds, and when it is full."),
            ("kv_cache/timing", "With a cache and without, on this machine."),
            ("kv_cache/calculator", "What a cache weighs for your shapes."),
        ),
    ),
)


def show() -> None:
    """The three paths beside each other."""
    for column, path in zip(st.columns(len(PATHS), gap="large"), PATHS, strict=True):
        with column, st.container(gap="small"):
            st.markdown(f"**{path.title}**")
            for folder, what in path.steps:
                with st.container(gap=None):
                    st.page_link(sections.script(folder))
                    st.markdown(f":small[{what}]")
