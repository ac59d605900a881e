"""Example questions from the lectures about which word attends to which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.compare.word_pairs.search import WordUnit
from serving.content_words import default_token, roles
from serving.runs import Run
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.visit import VisitPart, pair_parts

_KEYS = "word_pairs_query", "word_pairs_a", "word_pairs_b"
_LABELS = "Query word", "Word A (key)", "Word B (key)"


@dataclass(frozen=True)
class WordPairQuestion:
    """A sentence, a query word, and two words it might attend to."""

    text: str
    query: str
    key: str
    other: str


# Examples from the lectures, by their names in the menu.
QUESTIONS = {
    "it: animal or street?": WordPairQuestion(controls.ANIMAL, "it", "animal", "street"),
    "it: animal or tired?": WordPairQuestion(controls.ANIMAL, "it", "animal", "tired"),
    "it: animal or was?": WordPairQuestion(controls.ANIMAL, "it", "animal", "was"),
    "brush: artist or woman?": WordPairQuestion(controls.ARTIST, "brush", "artist", "woman"),
    "woman: brush or portrait?": WordPairQuestion(controls.ARTIST, "woman", "brush", "portrait"),
    "regulate: government or speech?": WordPairQuestion(
        controls.GOVERNMENT, "regulate", "government", "speech"
    ),
}


def defaults(run: Run, units: Sequence[WordUnit]) -> tuple[str, str, str]:
    """The initial selection: the query word, word A and word B.

    If a lecture question uses this text, its words are selected. Otherwise the query is a pronoun
    or the last content word, and A and B are the two earlier content words with the largest
    weights in any head.
    """
    words = [unit for unit in units if unit.is_word]
    labels = [unit.label for unit in words]
    for question in QUESTIONS.values():
        asked = question.query, question.key, question.other
        if question.text == run.tokens.text and set(asked) <= set(labels):
            return asked
    kinds = roles(run.tokens)
    looks = default_token(run.tokens)
    query = next((unit for unit in words if looks in unit.tokens), words[-1])
    largest = run.weights[:, :, query.tokens[0]].max(axis=(0, 1))  # (S)

    def rank(unit: WordUnit) -> tuple[bool, bool, float]:
        is_content, weight = kinds[unit.tokens[0]] == "content", largest[list(unit.tokens)].max()
        return is_content, unit.span < query.span, float(weight)

    others = sorted((unit for unit in words if unit is not query), key=rank, reverse=True)
    return query.label, others[0].label, others[min(1, len(others) - 1)].label


def choose(run: Run, units: Sequence[WordUnit]) -> list[str]:
    """The selected words: the query word, word A and word B.

    The first two are the visit's pair; in a different text they're matched by word. Word B is a
    third word.
    """
    text, spans = run.tokens.text, {unit.label: unit.span for unit in units if unit.is_word}
    words = list(spans)
    first = defaults(run, units)
    shown = dict(zip(_KEYS[:2], first, strict=False))
    both = pair_parts(text, spans, shown)
    chosen = [
        _word_picker(label, key, words, default, part)
        for label, key, default, part in zip(_LABELS, _KEYS, first, both, strict=False)
    ]
    others = (word for word in (*reversed(first), *words) if word not in chosen)
    other = VisitPart(next(others, None) if first[2] in chosen else None)
    return [*chosen, _word_picker(_LABELS[2], _KEYS[2], words, first[2], other)]


def _word_picker(label: str, key: str, words: list[str], default: str, part: VisitPart) -> str:
    index = words.index(default)
    choice: str = linked(st.selectbox, label, words, index=index, key=key, part=part)
    return choice


def use_question(name: str) -> None:
    """Set the controls to a question from the lectures."""
    question = QUESTIONS[name]
    st.session_state["word_pairs_text"] = question.text
    st.session_state["word_pairs_query"] = question.query
    st.session_state["word_pairs_a"] = question.key
    st.session_state["word_pairs_b"] = question.other


def swap() -> None:
    """Swap the query word and word A."""
    state = st.session_state
    state["word_pairs_query"], state["word_pairs_a"] = (
        state["word_pairs_a"],
        state["word_pairs_query"],
    )
