"""A generation with the attention of its steps: made while the visitor watches, then kept.

It runs on the page's own run, with progress: a change of any control, or the Stop button, abandons
it between two layers, because every report of progress lets Streamlit end the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from pretrained import Tokens
from pretrained.tokens import printable
from ui import models, turns
from ui.bounded import BoundedCache
from ui.generation import END_OF_TEXT
from ui.limits import (
    MAX_TRACED_PROMPT,
    MAX_TRACED_TOKENS,
    MIN_TRACED_TOKENS,
    TRACE_CACHE_BYTES,
    OverLimit,
    check_text,
    check_tokens,
)

if TYPE_CHECKING:
    from attention_core.traced import Trace

_STOPPED = "generated_stopped_settings"
_REPORT_SECONDS = 0.15  # between two reports inside one pass


@dataclass(frozen=True)
class Settings:
    """What a visitor asked for."""

    model: str
    prompt: str
    n_new: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Generation:
    """A finished run. labels, pieces, line_ends: an entry for each of the P + N tokens.

    Labels are unique in the text, pieces are as short as they can be. seconds: of the run that made
    it. ended: why it has fewer tokens than asked for, or nothing.
    """

    settings: Settings
    title: str
    trace: Trace
    labels: tuple[str, ...]
    pieces: tuple[str, ...]
    line_ends: tuple[bool, ...]
    seconds: float
    ended: str

    @property
    def n_prompt(self) -> int:
        """P, the number of prompt tokens."""
        return len(self.trace.prompt)


_kept: BoundedCache[Generation] = BoundedCache(
    TRACE_CACHE_BYTES, lambda made: made.trace.weights.untyped_storage().nbytes()
)


def _key(settings: Settings) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


def generation(settings: Settings, on_progress: Callable[[int], None] | None = None) -> Generation:
    """The run for these settings, kept for all visitors.

    `on_progress` is called now and then with the number of tokens chosen so far, and may abandon
    the run by raising.
    Raises: OverLimit for a prompt that is too long or a number of tokens out of range, ValueError
    for a prompt without a token.
    """
    check_text(settings.prompt)
    if not MIN_TRACED_TOKENS <= settings.n_new <= MAX_TRACED_TOKENS:
        raise OverLimit(
            f"Choose {MIN_TRACED_TOKENS} to {MAX_TRACED_TOKENS} new tokens, not {settings.n_new}."
        )
    return _kept.get(_key(settings), lambda: _make(settings, on_progress or (lambda _: None)))


def _make(settings: Settings, on_progress: Callable[[int], None]) -> Generation:
    from attention_core import Sampling
    from attention_core.traced import trace

    model = models.get(settings.model)
    empty = "There is no token in this prompt: type a word or more."
    prompt = models.encoded(
        model, settings.prompt, MAX_TRACED_PROMPT, "a prompt on this page", empty=empty
    )
    context = model.core.config.context_length
    check_tokens(len(prompt.ids), context, "the context of this model")
    n_new = min(settings.n_new, context - len(prompt.ids) + 1)  # the last one is never run
    chosen, reported = 0, time.monotonic()

    def step(count: int) -> None:
        nonlocal chosen
        chosen = count
        on_progress(chosen)

    def layer(_: int) -> None:
        nonlocal reported
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            on_progress(chosen)

    with turns.turn():
        begin = time.perf_counter()
        traced = trace(
            model.core,
            prompt.ids,
            max_new_tokens=n_new,
            sampling=Sampling(settings.temperature, seed=settings.seed),
            stop_ids=model.tokenizer.end_ids,
            on_step=step,
            on_layer=layer,
        )
        seconds = time.perf_counter() - begin
    ended = ""
    if traced.n_steps < n_new:
        ended = "The model ended its text here."
    elif n_new < settings.n_new:
        ended = f"The context of this model has room for {n_new} new tokens only."
    raw = [
        END_OF_TEXT.encode() if i in model.tokenizer.end_ids else model.tokenizer.decode_bytes([i])
        for i in traced.ids
    ]
    return Generation(
        settings=settings,
        title=model.spec.title,
        trace=traced,
        labels=_labels(traced.ids, raw),
        pieces=tuple(printable(piece) for piece in raw),
        line_ends=tuple(b"\n" in piece for piece in raw),
        seconds=seconds,
        ended=ended,
    )


def _labels(ids: tuple[int, ...], raw: list[bytes]) -> tuple[str, ...]:
    """Labels that are unique in the whole text, prompt and new tokens."""
    nothing = [(0, 0)] * len(ids)
    pieces = tuple(piece.decode("utf-8", "replace") for piece in raw)
    special = (False,) * len(ids)
    return Tokens("".join(pieces), ids, pieces, tuple(nothing), special, tuple(raw)).labels


def watched(settings: Settings) -> Generation | None:
    """The run, made here with progress and a Stop button if it is not kept; None once stopped.

    The line that it draws is as high before, during and after a run.
    Raises: as `generation`, and what loading a model raises.
    """

    def stop() -> None:
        st.session_state[_STOPPED] = settings

    def go_on() -> None:
        st.session_state.pop(_STOPPED, None)

    with st.container(horizontal=True, vertical_alignment="center"):
        button, status = st.empty(), st.empty()
    kept = _key(settings) in _kept
    if not kept and st.session_state.get(_STOPPED) == settings:
        button.button("Generate", icon=":material/play_arrow:", key="generated_start",
                      on_click=go_on)  # fmt: skip
        status.progress(0.0, text="Stopped. Press Generate, or change a setting.")
        return None
    go_on()
    if not kept:
        button.button("Stop", icon=":material/stop:", key="generated_stop", on_click=stop)
        status.progress(0.0, text="Generating …")

    def report(count: int) -> None:
        status.progress(count / settings.n_new, text=f"{count} of {settings.n_new} tokens …")

    try:
        made = generation(settings, report)
    finally:
        button.button("Stop", icon=":material/stop:", key="generated_stop_off", disabled=True)
        status.progress(0.0, text="No tokens.")
    status.progress(
        1.0,
        text=f"{_counted(made.trace.n_steps)}, made in {made.seconds:.2f} s. {made.ended}",
    )
    return made


def _counted(n_steps: int) -> str:
    return "1 token, in one step" if n_steps == 1 else f"{n_steps} tokens, one step each"


def clear() -> None:
    """Forget the kept runs (tests)."""
    _kept.clear()
