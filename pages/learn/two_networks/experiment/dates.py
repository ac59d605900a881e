"""The translator's task: rewrite dates in English as ISO dates such as `1998-05-03`.

The answer starts with the year, which comes last in the text, so the decoder has to look at the
end of the text first.
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
PAD, START = 0, 1  # pads texts in a batch; starts the decoder's input
VOCABULARY = 2 + len(SYMBOLS)
MAX_TEXT = 32  # symbols
ANSWER = 10  # length of 1998-05-03
FIRST_YEAR, LAST_YEAR = 1900, 2099
HELD_OUT = 10  # one of this many dates is left out of training, in every form


def encode(text: str) -> list[int]:
    """Convert a text to lower case and to 1 to 32 symbol ids.

    Raises: ValueError if the text is empty, is longer than 32 symbols, or contains an unknown
    symbol.
    """
    text = text.lower()
    if not 1 <= len(text) <= MAX_TEXT:
        raise ValueError(
            f"The translator can read 1 to {MAX_TEXT} symbols, but your text has {len(text)}."
        )
    unknown = sorted(set(text) - set(SYMBOLS))
    if unknown:
        raise ValueError(
            "The translator knows the letters a to z, digits, spaces, commas and hyphens, but not: "
            f"{' '.join(unknown)}"
        )
    return [2 + SYMBOLS.index(symbol) for symbol in text]


def decode(ids: list[int]) -> str:
    """Convert ids to text, without padding and the start symbol.

    Raises: ValueError for an id outside the vocabulary.
    """
    if any(not 0 <= number < VOCABULARY for number in ids):
        raise ValueError(f"ids must be between 0 and {VOCABULARY - 1}, got {ids}")
    return "".join(SYMBOLS[number - 2] for number in ids if number > START)


def is_held_out(day: date) -> bool:
    """Whether this date is left out of training: one date in ten."""
    return day.toordinal() % HELD_OUT == 0


def format_date(day: date, form: str) -> str:
    """Write a date in one of `FORMS`, in lower case."""
    teens = 11 <= day.day <= 13
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    month = MONTHS[day.month - 1]
    return form.format(
        ordinal=f"{day.day}{ending}", day=day.day, month=month, short=month[:3], year=day.year
    )


def parse_date(text: str) -> date | None:
    """The date that a text names in one of `FORMS`, from 1900 to 2099; None for any other text."""
    numbers = _year_month_day(text)
    if numbers is None:
        return None
    try:
        day = date(*numbers)
    except ValueError:  # no such day in this month
        return None
    return day if text.lower() in {format_date(day, form) for form in FORMS} else None


def is_impossible_day(text: str) -> bool:
    """Whether a text names a day that its month doesn't have, such as 29 feb 2023."""
    numbers = _year_month_day(text)
    if numbers is None:
        return False
    year, month, day = numbers
    return not 1 <= day <= calendar.monthrange(year, month)[1]


def _year_month_day(text: str) -> tuple[int, int, int] | None:
    """The year, month and day in a text, from 1900 to 2099; None unless there is one of each."""
    words = re.findall("[a-z]+|[0-9]+", text.lower())
    numbers = [int(word) for word in words if word.isdigit()]
    months = [
        number for number, name in enumerate(MONTHS, 1) if {name, name[:3]}.intersection(words)
    ]
    if len(numbers) != 2 or len(months) != 1 or not FIRST_YEAR <= numbers[1] <= LAST_YEAR:
        return None
    return numbers[1], months[0], numbers[0]


def pairs(count: int, seed: int, *, held_out: bool) -> list[tuple[str, str]]:
    """Draw texts and their answers from the held-out dates, or from the training dates.

    Raises: ValueError if `count` is not positive.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    draw = random.Random(seed)
    first, last = date(FIRST_YEAR, 1, 1).toordinal(), date(LAST_YEAR, 12, 31).toordinal()
    elements: list[tuple[str, str]] = []
    while len(elements) < count:
        day = date.fromordinal(draw.randint(first, last))
        if is_held_out(day) == held_out:
            elements.append((format_date(day, draw.choice(FORMS)), day.isoformat()))
    return elements


def batch(texts: list[str]) -> Tensor:
    """Convert texts to ids, padded with `PAD` at the end to the longest text: (B, S)."""
    ids = [encode(text) for text in texts]
    longest = max(map(len, ids))
    return tensor([row + [PAD] * (longest - len(row)) for row in ids])
