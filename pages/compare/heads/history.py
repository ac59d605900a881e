"""The section "How a head came to be": all heads of two models during training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from pages.compare.heads import history_charts, history_numbers
from pretrained import history as stored
from pretrained.history import History, Probe
from pretrained.specs import SPECS
from serving.heads import HeadId, all_heads
from ui.canvas.component import picture_caption
from ui.canvas.heatmap import ColourScale, Map, heatmap
from ui.canvas.mosaic import Arrangement, arrange, mosaic, packing
from ui.charts.show import show as show_chart
from ui.export import downloads
from ui.widgets import code_block, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

TITLE = "How a head came to be"
MODELS = {spec.name: spec.title for spec in SPECS}  # titles of the histories by name
THIS_HEAD, BEST_HEADS, ITS_MAP = "This head", "The best heads", "Its map"
MOSAIC, MAP = "heads_history_mosaic", "heads_history_map"
STEP, HEAD = "heads_history_step", "heads_history_head"


def has_history() -> bool:
    """Whether a stored training history is available."""
    return bool(stored.models_with_history())


def show() -> None:
    """Show the controls, the maps of all heads at a step, and lines over all steps."""
    st.markdown(
        "Heads start out random and specialize during training. We trained two models on the same "
        "novels: GPT-2 to predict the **next token**, and BERT to predict **masked words**. Move "
        "the slider to see every head after that training step."
    )
    try:
        history, text, number, head = _choices()
    except ValueError as error:  # the file is damaged
        messages.show_problem(error)
        return
    probe, step = history.probes[text], int(history.steps[number])
    all_heads_place, one_head_place = st.columns([5, 4], gap="medium")
    with _history_caption(history, probe):
        with all_heads_place:
            _mosaic(history, probe, number, head)
        with one_head_place:
            beside = linked(
                st.segmented_control,
                "Next to it",
                [THIS_HEAD, BEST_HEADS, ITS_MAP],
                default=THIS_HEAD,
                required=True,
                key="heads_history_beside",
                help="The scores of the selected head over all steps, the scores of the best head "
                "at each step, or the map of the selected head.",
            )
            if beside == ITS_MAP:
                _map(history, probe, number, head)
            else:
                _lines(history, text, step, head if beside == THIS_HEAD else None)
    st.markdown(history_numbers.notice(history, text))
    st.markdown(
        f":small[{history_numbers.text_lengths(history)} The weights are stored in 8 bits, "
        "accurate "
        f"to ±{probe.error:.4f}. The scores were computed from the exact weights.]"
    )
    with st.expander("The text and this head's numbers at every step"):
        code_block.plain(probe.text.strip())
        table = history_numbers.table(history, text, head)
        plain_table(table, "Scores and losses by step", {"step": "{:,}"}, max_rows=400)
        name = f"{history.name}_{head}_by_step"
        downloads.buttons(
            downloads.csv("Table", lambda: table, name),
            downloads.npz(
                "All heads at all steps", partial(arrays, history, text), f"{history.name}_history"
            ),
            key="heads_history_save",
        )


def _choices() -> tuple[History, int, int, HeadId]:
    """Show the controls; return the history, the indices of the text and the step, and the head."""
    names = {MODELS[name]: name for name in stored.models_with_history()}
    models, texts, steps, heads = st.columns([11, 7, 9, 4], vertical_alignment="bottom")
    with models:
        title = linked(
            st.segmented_control,
            "Model",
            list(names),
            default=next(iter(names)),
            required=True,
            key="heads_history_model",
            on_change=_nearest_step,
        )
    history = _history(names[title])
    with texts:
        by_title = [probe.title for probe in history.probes]
        text = by_title.index(linked(st.selectbox, "Text", by_title, key="heads_history_text"))
    with steps:
        choices = history.steps.tolist()
        step = linked(st.select_slider, "Training step", choices, choices[-1], key=STEP)
    with heads:
        by_name = all_heads(history.n_layers, history.n_heads)
        default = str(history_numbers.first_head(history, text))
        choice = linked(st.selectbox, "Head", by_name, by_name.index(default), key=HEAD)
    return history, text, choices.index(step), HeadId.parse(choice)


def _history(name: str) -> History:
    history = stored.history(name)
    assert history is not None  # only names of stored files are offered
    return history


def _nearest_step() -> None:
    """Keep the slider's relative position, at the nearest stored step, for another model."""
    titles = {MODELS[name]: name for name in stored.models_with_history()}
    chosen = titles.get(st.session_state["heads_history_model"])
    if chosen is None:
        return
    new = _history(chosen).steps.tolist()
    for name in titles.values():
        before = _history(name).steps.tolist()
        if before != new and st.session_state.get(STEP) in before:
            share = before.index(st.session_state[STEP]) / max(len(before) - 1, 1)
            st.session_state[STEP] = new[round(share * (len(new) - 1))]


@contextmanager
def _history_caption(history: History, probe: Probe) -> Iterator[None]:
    """Within this context, saved pictures name this model and text instead of the page's."""
    facts = picture_caption()
    before = dict(facts)
    facts.update(model=MODELS[history.name], name=history.name, sentence=probe.text.strip())
    try:
        yield
    finally:
        facts.clear()
        facts.update(before)


def _mosaic(history: History, probe: Probe, number: int, head: HeadId) -> None:
    """Show all heads at a step; a click selects one."""

    def opened(which: int) -> None:
        st.session_state[HEAD] = str(HeadId(*divmod(which, history.n_heads)))

    step, read = int(history.steps[number]), int(history.tokens[number])
    packed = packing.pack(
        probe.weights(number),
        probe.labels,
        name=MOSAIC,
        title=f"{MODELS[history.name]}, step {step:,}: {read / 1e6:.1f} million tokens read",
        causal=history.causal,
    )
    mosaic(packed, key=MOSAIC, on_open=opened)
    arrange(Arrangement(selected=head.layer * history.n_heads + head.head), key=MOSAIC)


def _map(history: History, probe: Probe, number: int, head: HeadId) -> None:
    """Show a large map of the head at a step."""
    weights = probe.weights(number)[head.layer, head.head]
    picture = Map(
        weights,
        probe.labels,
        title=f"{MODELS[history.name]}, {head}, step {int(history.steps[number]):,}",
        causal=history.causal,
        scale=ColourScale(float(weights.max()), square_root=True),
    )
    heatmap(picture, key=MAP)


def _lines(history: History, text: int, step: int, head: HeadId | None) -> None:
    """Show the scores of one head, or of the best heads, and the losses over the steps."""
    scores = history_numbers.by_step(history, text, head)
    names = list(history_numbers.titles().values())
    show_chart(history_charts.scores_chart, scores, names, step, key="heads_history_scores")
    begins = history.learns_from_context
    show_chart(
        history_charts.loss_chart,
        history_numbers.losses(history),
        step,
        None if begins is None else int(history.steps[begins]),
        key="heads_history_loss",
    )


def arrays(history: History, text: int) -> dict[str, Any]:
    """The weights on a text at every stored step, with all scores and losses."""
    probe = history.probes[text]
    return {
        "steps": history.steps,
        "tokens_read": history.tokens,
        "tokens": np.array(probe.labels),
        "token_ids": probe.ids,
        "weights": np.stack([probe.weights(number) for number in range(len(history.steps))]),
        **{f"score_{name}": v for name, v in history_numbers.scores(history, text).items()},
        **{f"loss_{name}": loss for name, loss in history.losses.items()},
        **{f"curve_{name}": values for name, values in history.curve.items()},
    }
