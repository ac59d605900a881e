"""Predict, then reveal: questions at the end of a page, whose answers are computed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import streamlit as st

QUESTIONS = 3  # on every page that asks


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
    asked = {f"{page}_quiz_{number}": one for number, one in enumerate(questions, start=1)}
    right = sum(answers().get(key) == (one.ask, one.right) for key, one in asked.items())
    with st.expander("Predict, then look"), st.container(key=f"{page}_quiz"):
        st.markdown(f":small[Answered right: {right} of {len(questions)}.]")
        for number, (key, question) in enumerate(asked.items(), start=1):
            _show(key, f"**{number}.** {question.ask}", question)


def answers() -> dict[str, tuple[str, str]]:
    """What this visitor answered: the question and the choice, by the keys of the widgets."""
    given: dict[str, tuple[str, str]] = st.session_state.setdefault("quiz_answers", {})
    return given


def _show(key: str, ask: str, question: Question) -> None:
    asked, answer = answers().get(key, ("", ""))
    if asked != question.ask or answer not in question.choices:  # its numbers have changed
        answer = ""
    elif key not in st.session_state:  # answered before the page was left
        st.session_state[key] = answer

    def reveal() -> None:
        answers()[key] = (question.ask, st.session_state[key])

    with st.container(border=True):
        chosen = st.radio(ask, question.choices, index=None, key=key)
        st.button("Reveal", key=f"{key}_reveal", on_click=reveal, disabled=chosen is None)
        if chosen is not None and chosen == answer:  # another choice hides the answer again
            if chosen == question.right:
                st.success(f"Yes. {question.because}", icon=":material/check:")
            else:
                st.info(f"No: {question.right}. {question.because}", icon=":material/close:")
