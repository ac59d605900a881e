"""Quizzes at the end of a page, with answers computed from the page's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from ui.widgets.lazy_expander import lazy_expander
from ui.widgets.questions import Answers, Question, parse_answers

QUESTIONS = 3  # on every page with a quiz
_answer_store = st.components.v2.component(
    "attention_answers", js=Path(__file__).with_name("answer_store.js").read_text(encoding="utf-8")
)


def quiz(page: str, questions: Callable[..., Sequence[Question]], *arguments: Any) -> None:
    """Show a quiz with `questions(*arguments)`, which are created when the visitor opens it.

    An answer appears only after the visitor has made a choice and pressed the button.
    """
    lazy_expander("Predict, then look", f"{page}_predict", _render, page, questions, *arguments)


def _render(page: str, questions: Callable[..., Sequence[Question]], *arguments: Any) -> None:
    numbered = {
        f"{page}_quiz_{number}": q for number, q in enumerate(questions(*arguments), start=1)
    }
    right = sum(answers().get(key) == (q.identity, q.right) for key, q in numbered.items())
    with st.container(key=f"{page}_quiz"):
        st.markdown(f":small[Correct answers: {right} of {len(numbered)}.]")
        for number, (key, question) in enumerate(numbered.items(), start=1):
            _show(key, f"**{number}.** {question.prompt}", question)
        sync_answers()


def questions_of(pages: Iterable[str]) -> set[str]:
    """The widget keys of all questions on these pages (folder names)."""
    return {f"{page}_quiz_{number}" for page in pages for number in range(1, QUESTIONS + 1)}


def answers() -> Answers:
    """The visitor's answers (question and choice), by widget key."""
    stored: Answers = st.session_state.setdefault("quiz_answers", {})
    return stored


def sync_answers() -> None:
    """Store the answers in the browser, and load those from earlier visits."""

    def take() -> None:
        kept = parse_answers(str(st.session_state["quiz_kept"].get("kept") or ""))
        st.session_state["quiz_answers"] = kept | answers()
        for key in kept:
            if st.session_state.get(key, "") is None:  # shown on this page, no choice made yet
                del st.session_state[key]

    _answer_store(data=answers(), key="quiz_kept", on_kept_change=take)


def _show(key: str, prompt: str, question: Question) -> None:
    identity, answer = answers().get(key, ("", ""))
    if (
        identity != question.identity or answer not in question.choices
    ):  # not answered, or its numbers have changed
        answer = ""
    elif key not in st.session_state:  # answered on an earlier visit to the page
        st.session_state[key] = answer

    def reveal() -> None:
        answers()[key] = (question.identity, st.session_state[key])

    with st.container(border=True):
        choice = st.radio(prompt, question.choices, index=None, key=key)
        st.button("Check answer", key=f"{key}_reveal", on_click=reveal, disabled=choice is None)
        if choice is not None and choice == answer:  # changing the choice hides the answer
            if choice == question.right:
                st.success(f"Correct. {question.explanation}", icon=":material/check:")
            else:
                st.info(
                    f"Not quite. The answer is: {question.right}. {question.explanation}",
                    icon=":material/close:",
                )
