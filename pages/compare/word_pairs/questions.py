"""The questions of the lectures about words that look at others, and how they get asked."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.widgets import controls


@dataclass(frozen=True)
class Question:
    """A sentence, the word that looks, and two words it might look at."""

    text: str
    query: str
    key: str
    other: str


# What the lectures tell about these sentences, by the short names of their buttons.
QUESTIONS = {
    "it: animal or street?": Question(controls.ANIMAL, "it", "animal", "street"),
    "it: animal or tired?": Question(controls.ANIMAL, "it", "animal", "tired"),
    "brush: artist or woman?": Question(controls.ARTIST, "brush", "artist", "woman"),
    "woman: brush or portrait?": Question(controls.ARTIST, "woman", "brush", "portrait"),
    "regulate: government or speech?": Question(
        controls.GOVERNMENT, "regulate", "government", "speech"
    ),
}


def defaults(text: str, labels: list[str]) -> tuple[int, int, int]:
    """Which words to begin with: those of a lecture's question about this text, if there is one.

    Else the last word looks, at the first one and at the one before itself.
    """
    for question in QUESTIONS.values():
        asked = (question.query, question.key, question.other)
        if question.text == text and set(asked) <= set(labels):
            query, key, other = map(labels.index, asked)
            return query, key, other
    last = len(labels) - 1
    return last, 0, last - 1


def ask() -> None:
    """Put a question of the lectures into the controls."""
    chosen = st.session_state["word_pairs_question"]
    if chosen is not None:
        question = QUESTIONS[chosen]
        st.session_state["word_pairs_text"] = question.text
        st.session_state["word_pairs_query"] = question.query
        st.session_state["word_pairs_a"] = question.key
        st.session_state["word_pairs_b"] = question.other
        st.session_state["word_pairs_question"] = None


def swap() -> None:
    """Look from A to the word that looked."""
    state = st.session_state
    state["word_pairs_query"], state["word_pairs_a"] = (
        state["word_pairs_a"],
        state["word_pairs_query"],
    )
