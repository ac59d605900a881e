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


# What the lectures tell about these sentences, by their short names in the menu.
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
    """Indices of the words that are chosen at first: the word that looks, word A and word B.

    If a question of a lecture is about this text, its words are chosen. Otherwise the last word
    looks at the first word and at the word before itself.
    """
    for question in QUESTIONS.values():
        question_words = (question.query, question.key, question.other)
        if question.text == text and set(question_words) <= set(labels):
            query, key, other = map(labels.index, question_words)
            return query, key, other
    last = len(labels) - 1
    return last, 0, last - 1


def ask(chosen: str) -> None:
    """Put a question of the lectures into the controls."""
    question = QUESTIONS[chosen]
    st.session_state["word_pairs_text"] = question.text
    st.session_state["word_pairs_query"] = question.query
    st.session_state["word_pairs_a"] = question.key
    st.session_state["word_pairs_b"] = question.other


def swap() -> None:
    """Swap the word that looks and word A."""
    state = st.session_state
    state["word_pairs_query"], state["word_pairs_a"] = (
        state["word_pairs_a"],
        state["word_pairs_query"],
    )
