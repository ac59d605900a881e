"""Quizzes at the end of a page, with answers computed from the page's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from ui.widgets.folded import folded
from ui.widgets.questions import Answers, Question, read

QUESTIONS = 3  # on every page with a quiz
_keep = st.components.v2.component(
    "attention_answers", js=Path(__file__).with_name("kept_answers.js").read_text(encoding="utf-8")
)


def quiz(page: str, questions: Callable[..., Sequence[Question]], *arguments: Any) -> None:
    """Show a quiz with `questions(*arguments)`, which are created when the visitor opens it.

    An answer appears only after the visitor has made a choice and pressed the button.
    """
    folded("Predict, then look", f"{page}_predict", _ask, page, questions, *arguments)


def _ask(page: str, questions: Callable[..., Sequence[Question]], *arguments: Any) -> None:
    asked = {f"{page}_quiz_{number}": q for number, q in enumerate(questions(*arguments), start=1)}
    right = sum(answers().get(key) == (q.asked, q.right) for key, q in asked.items())
    with st.container(key=f"{page}_quiz"):
        st.markdown(f":small[Correct answers: {right} of {len(asked)}.]")
        for number, (key, question) in enumerate(asked.items(), start=1):
            _show(key, f"**{number}.** {question.ask}", question)
        keep()


def questions_of(pages: Iterable[str]) -> set[str]:
    """The widget keys of all questions on these pages (folder names)."""
    return {f"{page}_quiz_{number}" for page in pages for number in range(1, QUESTIONS + 1)}


def answers() -> Answers:
    """The visitor's answers (question and choice), by widget key."""
    given: Answers = st.session_state.setdefault("quiz_answers", {})
    return given


def keep() -> None:
    """Store the answers in the browser, and load those from earlier visits."""

    def take() -> None:
        kept = read(str(st.session_state["quiz_kept"].get("kept") or ""))
        st.session_state["quiz_answers"] = kept | answers()
        for key in kept:
            if st.session_state.get(key, "") is None:  # shown on this page, no choice made yet
                del st.session_state[key]

    _keep(data=answers(), key="quiz_kept", on_kept_change=take)


def _show(key: str, ask: str, question: Question) -> None:
    asked, answer = answers().get(key, ("", ""))
    if (
        asked != question.asked or answer not in question.choices
    ):  # not answered, or its numbers have changed
        answer = ""
    elif key not in st.session_state:  # answered on an earlier visit to the page
        st.session_state[key] = answer

    def reveal() -> None:
        answers()[key] = (question.asked, st.session_state[key])

    with st.container(border=True):
        chosen = st.radio(ask, question.choices, index=None, key=key)
        st.button("Check answer", key=f"{key}_reveal", on_click=reveal, disabled=chosen is None)
        if chosen is not None and chosen == answer:  # changing the choice hides the answer
            if chosen == question.right:
                st.success(f"Correct. {question.because}", icon=":material/check:")
            else:
                st.info(
                    f"Not quite. The answer is: {question.right}. {question.because}",
                    icon=":material/close:",
                )
