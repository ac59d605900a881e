"""The task of the translator: dates as people write them, and the same dates as `1998-05-03`.

The date of the answer begins with the year, which stands last in the text: a decoder that writes
it has to look at the end of the text first.
"""

from __future__ import annotations

import calendar
import random
import re
from datetime import date

from torch import Tensor, tensor

MONTHS = tuple(name.lower() for name in calendar.month_name[1:])
FORMS = (
    "{ordinal} of {month} {year}",
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{short} {day} {year}",
    "{day} {short} {year}",
    "the {ordinal} of {month} {year}",
)
SYMBOLS = " ,-0123456789abcdefghijklmnopqrstuvwxyz"
PAD, START = 0, 1  # fills up a batch; what the decoder reads before its first symbol
VOCABULARY = 2 + len(SYMBOLS)
MAX_TEXT = 32  # symbols
ANSWER = 10  # symbols of 1998-05-03
FIRST_YEAR, LAST_YEAR = 1900, 2099
HELD_OUT = 10  # one date in so many is kept from training, in every form


def encode(text: str) -> list[int]:
    """The ids of a text's symbols, in lower case: a list of 1 to 32 numbers.

    Raises: ValueError for an empty text, a text beyond 32 symbols, or an unknown symbol.
    """
    text = text.lower()
    if not 1 <= len(text) <= MAX_TEXT:
        raise ValueError(
            f"The translator reads 1 to {MAX_TEXT} symbols. This text has {len(text)}."
        )
    unknown = sorted(set(text) - set(SYMBOLS))
    if unknown:
        raise ValueError(
            "The translator reads the letters a to z, digits, space, comma and hyphen. It does not "
            f"know: {' '.join(unknown)}"
        )
    return [2 + SYMBOLS.index(symbol) for symbol in text]


def decode(ids: list[int]) -> str:
    """The text of ids; padding and the start symbol are left out.

    Raises: ValueError for an id outside the vocabulary.
    """
    if any(not 0 <= number < VOCABULARY for number in ids):
        raise ValueError(f"ids must be between 0 and {VOCABULARY - 1}, got {ids}")
    return "".join(SYMBOLS[number - 2] for number in ids if number > START)


def is_held_out(day: date) -> bool:
    """Whether training never sees this date: one date in ten."""
    return day.toordinal() % HELD_OUT == 0


def write(day: date, form: str) -> str:
    """The date in one of `FORMS`, in lower case."""
    teens = 11 <= day.day <= 13
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    month = MONTHS[day.month - 1]
    return form.format(
        ordinal=f"{day.day}{ending}", day=day.day, month=month, short=month[:3], year=day.year
    )


def read(text: str) -> date | None:
    """The date that a text names in one of `FORMS`, from 1900 to 2099; None for any other text."""
    words = re.findall("[a-z]+|[0-9]+", text.lower())
    numbers = [int(word) for word in words if word.isdigit()]
    months = [
        number for number, name in enumerate(MONTHS, 1) if {name, name[:3]}.intersection(words)
    ]
    if len(numbers) != 2 or len(months) != 1 or not FIRST_YEAR <= numbers[1] <= LAST_YEAR:
        return None
    try:
        day = date(numbers[1], months[0], numbers[0])
    except ValueError:  # no such day in this month
        return None
    return day if text.lower() in {write(day, form) for form in FORMS} else None


def pairs(count: int, seed: int, *, held_out: bool) -> list[tuple[str, str]]:
    """Texts and their answers, drawn from the dates kept from training or from the others.

    Raises: ValueError if `count` is not positive.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    draw = random.Random(seed)
    first, last = date(FIRST_YEAR, 1, 1).toordinal(), date(LAST_YEAR, 12, 31).toordinal()
    drawn: list[tuple[str, str]] = []
    while len(drawn) < count:
        day = date.fromordinal(draw.randint(first, last))
        if is_held_out(day) == held_out:
            drawn.append((write(day, draw.choice(FORMS)), day.isoformat()))
    return drawn


def batch(texts: list[str]) -> Tensor:
    """The ids of texts, filled up with `PAD` at the end: (B, S) of the longest text."""
    ids = [encode(text) for text in texts]
    longest = max(map(len, ids))
    return tensor([row + [PAD] * (longest - len(row)) for row in ids])
