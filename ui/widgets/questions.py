"""Multiple-choice questions, and the answers that browsers store between visits.

Stored answers are untrusted: anyone could have edited them. So they're never displayed, and an
answer counts only if its question and choice exist on the site.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from zlib import crc32

# Several times the size of the answers to all questions on the site
MAX_CHARACTERS, MAX_ANSWERS = 100_000, 500

# widget key -> (`Question.identity`, choice)
Answers = dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Question:
    """A multiple-choice question.

    prompt: the question (trusted Markdown). explanation: the explanation, with the computed numbers
    that prove the answer (trusted Markdown). right: the choice that was computed to be correct.
    wrong: the other choices.

    Raises: ValueError if two choices are equal or there are no wrong ones.
    """

    prompt: str
    right: str
    wrong: tuple[str, ...]
    explanation: str

    def __post_init__(self) -> None:
        """Check that there are wrong choices and that all choices are different."""
        if not self.wrong or len({self.right, *self.wrong}) != 1 + len(self.wrong):
            raise ValueError(f"the choices of {self.prompt!r} are not distinct")

    @property
    def identity(self) -> str:
        """The ID stored with an answer: the question plus a checksum of its explanation.

        If the numbers in the explanation change, old answers no longer count.
        """
        return f"{self.prompt} [{crc32(self.explanation.encode()):08x}]"

    @property
    def choices(self) -> tuple[str, ...]:
        """All choices, in a fixed pseudorandom order that doesn't reveal the answer."""
        everything = [self.right, *self.wrong]
        return tuple(sorted(everything, key=lambda choice: crc32((self.prompt + choice).encode())))


def nearest_choice(value: float, choices: dict[str, float]) -> tuple[str, tuple[str, ...]]:
    """The choice whose number is closest to the value, and the other choices."""
    right = min(choices, key=lambda name: abs(choices[name] - value))
    return right, tuple(name for name in choices if name != right)


def parse_answers(text: str) -> Answers:
    """Parse answers from JSON; anything but a dict of string pairs gives no answers."""
    if len(text) > MAX_CHARACTERS:
        return {}
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(stored, dict) or len(stored) > MAX_ANSWERS:
        return {}
    return {
        key: (pair[0], pair[1])
        for key, pair in stored.items()
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, str) for p in pair)
    }
