"""Time measurements: one at a time in the whole process, cached for all visitors.

A page measures when a button is clicked, never when a slider moves. The button's callback gets a
new round number, and the page requests the result for its settings and that round:

    def again() -> None:
        st.session_state["page_round"] = measure.fresh()

    st.button("Measure again", on_click=again)
    settings = ("page", width, n_tokens)
    result = measure.kept(settings, st.session_state.get("page_round", measure.FIRST), make)
    st.text(f"Measured at {result.at:%H:%M:%S} UTC")

`make()` runs in an exclusive slot (`serving.compute`), so that nothing else computes at the same
time, and after the models that are loaded when the server starts. It's called again only if there
is no cached result for the settings and the round. With `measure.FIRST`, all visitors share the
first visitor's measurement.
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
WARM_UP_SECONDS = 10.0  # the longest time that a measurement waits for models to load

_rounds = itertools.count(FIRST + 1)


@dataclass(frozen=True)
class TimedResult(Generic[Value]):
    """The result of a measurement, and the time when it ended (UTC)."""

    value: Value
    at: datetime


def new_round() -> int:
    """A new round number, so that the next request is measured again."""
    return next(_rounds)


def cached_measurement(
    settings: Hashable, round_: int, measure: Callable[[], Value]
) -> TimedResult[Value]:
    """The result for these settings and this round; if it isn't cached, measure it now.

    settings: must start with the page's name, so that pages don't share results by accident. Errors
    of `measure` aren't cached. Visitors share the results, so treat them as read-only.
    """
    return cast(TimedResult[Value], _cached_measurement(settings, round_, measure))


@cached(key=lambda settings, round_, make: (settings, round_))
def _cached_measurement(
    settings: Hashable, round_: int, make: Callable[[], object]
) -> TimedResult[object]:
    loading = warmup.start()
    if loading is not None:  # models load in the background after the server starts
        loading.join(WARM_UP_SECONDS)
    with compute.slot(exclusive=True):
        return TimedResult(make(), datetime.now(UTC))


def clear() -> None:
    """Delete all results (for tests)."""
    _cached_measurement.clear()
