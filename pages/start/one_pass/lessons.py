"""Links from the tour's captions to lessons, opened at the tour's text and head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

Parameters = Mapping[str, str | int]


@dataclass(frozen=True)
class Subject:
    """The subject of the tour: a text, a model, one of its heads, and the query token."""

    text: str
    model: str
    layer: int
    head: int
    query: int

    def head_parameters(self) -> Parameters:
        """URL parameters of a page that shows one head."""
        return {"text": self.text, "model": self.model, "layer": self.layer, "head": self.head}


def _block(section: str) -> Callable[[Subject], Parameters]:
    """A section of the page "Block"."""
    return lambda subject: {
        "section": section,
        "text": subject.text,
        "model": subject.model,
        "decoder": subject.model,
        "layer_of": subject.model,
        "layer": subject.layer,
    }


def _shapes(step: int) -> Callable[[Subject], Parameters]:
    """A step of the page "Shapes"."""
    return lambda subject: {
        "words": subject.text,
        "of": subject.model,
        "layer": subject.layer,
        "head": subject.head,
        "step": step,
    }


# lesson -> its page's folder, and its URL parameters without the page's prefix
LESSONS: Mapping[str, tuple[str, Callable[[Subject], Parameters]]] = {
    "tokens": ("learn/tokens", lambda subject: {"text": subject.text}),
    "similarity": (
        "learn/similarity",
        lambda subject: {**subject.head_parameters(), "word": subject.query},
    ),
    "position": (
        "learn/position",
        lambda subject: {"text": subject.text, "model": subject.model},
    ),
    "layer": ("learn/block", _block("One layer")),
    "stream": ("learn/block", _block("Residual stream")),
    "lens": ("learn/block", _block("Logit lens")),
    "next token": ("learn/block", _block("Next token")),
    "heads": (
        "learn/why_several_heads",
        lambda subject: {**subject.head_parameters(), "token": subject.query},
    ),
    "scores": (
        "learn/ladder",
        lambda subject: {"input": "my sentence", "text": subject.text, "model": subject.model},
    ),
    "scaling": (
        "learn/scaling",
        lambda subject: {"part": "3. A real head without its scale", **subject.head_parameters()},
    ),
    "masking": (
        "learn/masking",
        lambda subject: {"input": "my sentence", **subject.head_parameters()},
    ),
    "split": ("learn/shapes", _shapes(6)),
    "context": ("learn/shapes", _shapes(9)),
    "output": ("learn/shapes", _shapes(11)),
    "word pairs": (
        "compare/word_pairs",
        lambda subject: {"text": subject.text, "model": subject.model},
    ),
    "cache": (
        "kv_cache/what_is_recomputed",
        lambda subject: {"prompt": subject.text, "model": subject.model},
    ),
}


def address(lesson: str, subject: Subject) -> str:
    """The URL of a lesson, opened at the subject."""
    folder, parameters = LESSONS[lesson]
    prefix = folder.rpartition("/")[2]
    query = {f"{prefix}_{name}": value for name, value in parameters(subject).items()}
    return f"/{prefix.replace('_', '-')}?{urlencode(query)}"
