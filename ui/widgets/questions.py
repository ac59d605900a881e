"""Questions with choices, and what a browser keeps of the answers from one visit to the next.

Kept answers come from outside: a text that anybody may have changed. So nothing of it is shown, and
an answer counts where its question and its choice are those of the site.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from zlib import crc32

# The answers to all questions of the site, several times over.
MOST_CHARACTERS, MOST_ANSWERS = 100_000, 500

# the key of the widget -> `Question.asked` and the choice
Answers = dict[str, tuple[str, str]]


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
    def asked(self) -> str:
        """What an answer is kept with: the question, and a code of the numbers that settle it.

        An answer to the same words about other tensors is then no answer to this question.
        """
        return f"{self.ask} [{crc32(self.because.encode()):08x}]"

    @property
    def choices(self) -> tuple[str, ...]:
        """All choices, in an order that does not give the answer away and does not change."""
        everything = [self.right, *self.wrong]
        return tuple(sorted(everything, key=lambda choice: crc32((self.ask + choice).encode())))


def nearest(value: float, choices: dict[str, float]) -> tuple[str, tuple[str, ...]]:
    """The choice whose number is nearest to the value, and the others."""
    right = min(choices, key=lambda name: abs(choices[name] - value))
    return right, tuple(name for name in choices if name != right)


def read(text: str) -> Answers:
    """Answers from the JSON of a dictionary of pairs of texts; none from anything else."""
    if len(text) > MOST_CHARACTERS:
        return {}
    try:
        kept = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict) or len(kept) > MOST_ANSWERS:
        return {}
    return {
        key: (pair[0], pair[1])
        for key, pair in kept.items()
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, str) for p in pair)
    }
