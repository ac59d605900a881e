"""Measurements of time: one at a time in the whole process, and each kept for all visitors.

A page measures on a button, never on a slider move. The button's callback takes a number that no
measurement had before, and the page asks for the result under its settings and that number:

    def again() -> None:
        st.session_state["page_round"] = measure.fresh()

    st.button("Measure again", on_click=again)
    settings = ("page", width, n_tokens)
    result = measure.kept(settings, st.session_state.get("page_round", measure.FIRST), make)
    st.text(f"Measured at {result.at:%H:%M:%S} UTC")

`make()` runs in an exclusive slot (`serving.compute`), so that nothing else computes meanwhile, and
after the models that are loaded at the start of the server. It is called again only for settings or
a round that are not kept. With `measure.FIRST` every visitor sees the measurement of the first one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar, cast

from serving import compute, warmup
from serving.cache import cached

Value = TypeVar("Value")

FIRST = 0  # the round that all visitors share
WARM_UP_SECONDS = 10.0  # how long a first measurement waits for the models at most

_rounds = itertools.count(FIRST + 1)


@dataclass(frozen=True)
class TimedResult(Generic[Value]):
    """What a measurement returned, and when it ended (UTC)."""

    value: Value
    at: datetime


def fresh() -> int:
    """A round that no measurement in this process had: what is then asked for is measured anew."""
    return next(_rounds)


def kept(settings: Hashable, round_: int, make: Callable[[], Value]) -> TimedResult[Value]:
    """The result for these settings and this round, measured alone if it is not kept.

    settings: begins with the page's name, so that two pages cannot meet. Errors of `make` are not
    kept. Results are shared between visitors: treat them as read-only.
    """
    return cast(TimedResult[Value], _measured(settings, round_, make))


@cached(key=lambda settings, round_, make: (settings, round_))
def _measured(settings: Hashable, round_: int, make: Callable[[], object]) -> TimedResult[object]:
    loading = warmup.start()
    if loading is not None:  # right after a start, models load in the background
        loading.join(WARM_UP_SECONDS)
    with compute.slot(exclusive=True):
        return TimedResult(make(), datetime.now(UTC))


def clear() -> None:
    """Forget every result (tests)."""
    _measured.clear()
