"""Predict, then reveal: questions at the end of a page, whose answers are computed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import streamlit as st


@dataclass(frozen=True)
class Question:
    """A question with its choices.

    ask, because: Markdown of ours, the second with the computed numbers that settle it. right: the
    choice that was computed to be true. wrong: the other choices.

    Raises: ValueError if a choice is given twice, or there is no wrong choice.
    """

    ask: str
    right: str
    wrong: tuple[str, ...]
    because: str

    def __post_init__(self) -> None:
        """Refuse a question with repeated choices, or with no wrong one."""
        if not self.wrong or len({self.right, *self.wrong}) != 1 + len(self.wrong):
            raise ValueError(f"the choices of {self.ask!r} are not distinct")

    @property
    def choices(self) -> tuple[str, ...]:
        """All choices, in an order that does not give the answer away and does not change."""
        everything = [self.right, *self.wrong]
        return tuple(sorted(everything, key=lambda choice: crc32((self.ask + choice).encode())))


def nearest(value: float, choices: dict[str, float]) -> tuple[str, tuple[str, ...]]:
    """The choice whose number is nearest to the value, and the others."""
    right = min(choices, key=lambda name: abs(choices[name] - value))
    return right, tuple(name for name in choices if name != right)


def quiz(page: str, questions: Sequence[Question]) -> None:
    """Show the questions; an answer appears only after a choice was made and asked about."""
    with st.expander("Predict, then look"), st.container(key=f"{page}_quiz"):
        for number, question in enumerate(questions, start=1):
            _show(f"{page}_quiz_{number}", f"**{number}.** {question.ask}", question)


def _show(key: str, ask: str, question: Question) -> None:
    shown_key = f"{key}_shown"

    def reveal() -> None:
        st.session_state[shown_key] = (question.ask, st.session_state[key])

    with st.container(border=True):
        chosen = st.radio(ask, question.choices, index=None, key=key)
        st.button("Reveal", key=f"{key}_reveal", on_click=reveal, disabled=chosen is None)
        # another question (its numbers have changed) or another choice hides the answer again
        if chosen is not None and st.session_state.get(shown_key) == (question.ask, chosen):
            if chosen == question.right:
                st.success(f"Yes. {question.because}", icon=":material/check:")
            else:
                st.info(f"No: {question.right}. {question.because}", icon=":material/close:")
