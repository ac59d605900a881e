"""The part "How a head came to be": all heads of two models, step by step of their training."""

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
from ui.canvas.component import about
from ui.canvas.heatmap import ColourScale, Map, heatmap
from ui.canvas.mosaic import Arrangement, arrange, mosaic, packing
from ui.charts.show import show as show_chart
from ui.export import downloads
from ui.widgets import code_block, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

TITLE = "How a head came to be"
MODELS = {spec.name: spec.title for spec in SPECS}  # by their names
THIS_HEAD, BEST_HEADS, ITS_MAP = "This head", "The best heads", "Its map"
MOSAIC, MAP = "heads_history_mosaic", "heads_history_map"
STEP, HEAD = "heads_history_step", "heads_history_head"


def offered() -> bool:
    """Whether the training of a model was kept."""
    return bool(stored.stored())


def show() -> None:
    """The controls, the maps of all heads at a step, and lines over all steps."""
    st.markdown(
        "Two models were trained for this site on the same novels: GPT-2 to say the **next "
        "token**, BERT to say **masked words**. Move the slider to see every head as it was after "
        "that step."
    )
    try:
        kept, text, number, head = _choices()
    except ValueError as error:  # a damaged file
        messages.problem(error)
        return
    probe, step = kept.probes[text], int(kept.steps[number])
    all_heads_place, one_head_place = st.columns([5, 4], gap="medium")
    with _about(kept, probe):
        with all_heads_place:
            _mosaic(kept, probe, number, head)
        with one_head_place:
            beside = linked(
                st.segmented_control,
                "Beside it",
                [THIS_HEAD, BEST_HEADS, ITS_MAP],
                default=THIS_HEAD,
                required=True,
                key="heads_history_beside",
                help="The scores of the chosen head over all steps, at each step those of the best "
                "head, or the map of the chosen head.",
            )
            if beside == ITS_MAP:
                _map(kept, probe, number, head)
            else:
                _lines(kept, text, step, head if beside == THIS_HEAD else None)
    st.markdown(history_numbers.notice(kept, text))
    st.markdown(
        f":small[{history_numbers.text_lengths(kept)} Each weight is stored in 8 bits, within "
        f"±{probe.error:.4f}; the scores are from the exact ones.]"
    )
    with st.expander("The text, and the numbers of this head step by step"):
        code_block.plain(probe.text.strip())
        table = history_numbers.table(kept, text, head)
        plain_table(table, "Scores and losses by step", {"step": "{:,}"}, most=400)
        name = f"{kept.name}_{head}_by_step"
        downloads.buttons(
            downloads.csv("This table", lambda: table, name),
            downloads.npz(
                "All heads at all steps", partial(arrays, kept, text), f"{kept.name}_history"
            ),
            key="heads_history_save",
        )


def _choices() -> tuple[History, int, int, HeadId]:
    """The controls: the history, the number of the text, that of the stored step, and the head."""
    names = {MODELS[name]: name for name in stored.stored()}
    models, texts, steps, heads = st.columns([11, 7, 9, 4], vertical_alignment="bottom")
    with models:
        title = linked(
            st.segmented_control,
            "Model",
            list(names),
            default=next(iter(names)),
            required=True,
            key="heads_history_model",
            on_change=_same_place,
        )
    kept = _history(names[title])
    with texts:
        by_title = [probe.title for probe in kept.probes]
        text = by_title.index(linked(st.selectbox, "Text", by_title, key="heads_history_text"))
    with steps:
        choices = kept.steps.tolist()
        step = linked(st.select_slider, "Training step", choices, choices[-1], key=STEP)
    with heads:
        named = all_heads(kept.n_layers, kept.n_heads)
        default = str(history_numbers.first_head(kept, text))
        chosen = linked(st.selectbox, "Head", named, named.index(default), key=HEAD)
    return kept, text, choices.index(step), HeadId.parse(chosen)


def _history(name: str) -> History:
    kept = stored.history(name)
    assert kept is not None  # its name is among those of the files
    return kept


def _same_place() -> None:
    """With another model the slider stays where it is, on the nearest step that was stored."""
    titles = {MODELS[name]: name for name in stored.stored()}
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
def _about(kept: History, probe: Probe) -> Iterator[None]:
    """Pictures that are saved inside name this model and text, and not those of the page."""
    facts = about()
    before = dict(facts)
    facts.update(model=MODELS[kept.name], name=kept.name, sentence=probe.text.strip())
    try:
        yield
    finally:
        facts.clear()
        facts.update(before)


def _mosaic(kept: History, probe: Probe, number: int, head: HeadId) -> None:
    """All heads at a step; a click chooses one."""

    def opened(which: int) -> None:
        st.session_state[HEAD] = str(HeadId(*divmod(which, kept.n_heads)))

    step, read = int(kept.steps[number]), int(kept.tokens[number])
    packed = packing.pack(
        probe.weights(number),
        probe.labels,
        name=MOSAIC,
        title=f"{MODELS[kept.name]}, step {step:,}: {read / 1e6:.1f} million tokens read",
        causal=kept.causal,
    )
    mosaic(packed, key=MOSAIC, on_open=opened)
    arrange(Arrangement(selected=head.layer * kept.n_heads + head.head), key=MOSAIC)


def _map(kept: History, probe: Probe, number: int, head: HeadId) -> None:
    """The head at a step, large."""
    weights = probe.weights(number)[head.layer, head.head]
    picture = Map(
        weights,
        probe.labels,
        title=f"{MODELS[kept.name]}, {head}, step {int(kept.steps[number]):,}",
        causal=kept.causal,
        scale=ColourScale(float(weights.max()), square_root=True),
    )
    heatmap(picture, key=MAP)


def _lines(kept: History, text: int, step: int, head: HeadId | None) -> None:
    """The scores of a head, or of the best ones, and the losses, over the steps."""
    scores = history_numbers.by_step(kept, text, head)
    names = list(history_numbers.titles().values())
    show_chart(history_charts.scores_chart, scores, names, step, key="heads_history_scores")
    begins = kept.learns_from_context
    show_chart(
        history_charts.loss_chart,
        history_numbers.losses(kept),
        step,
        None if begins is None else int(kept.steps[begins]),
        key="heads_history_loss",
    )


def arrays(kept: History, text: int) -> dict[str, Any]:
    """The weights on a text at every stored step, and all scores and losses."""
    probe = kept.probes[text]
    return {
        "steps": kept.steps,
        "tokens_read": kept.tokens,
        "tokens": np.array(probe.labels),
        "token_ids": probe.ids,
        "weights": np.stack([probe.weights(number) for number in range(len(kept.steps))]),
        **{f"score_{name}": v for name, v in history_numbers.scores(kept, text).items()},
        **{f"loss_{name}": loss for name, loss in kept.losses.items()},
        **{f"curve_{name}": values for name, values in kept.curve.items()},
    }
