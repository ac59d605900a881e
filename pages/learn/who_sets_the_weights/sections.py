"""The picture and the parts of the page "Who sets the weights"."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from pages.learn.who_sets_the_weights import charts, numbers, run
from pages.learn.who_sets_the_weights.run import FineTunedRun
from serving.heads import HeadId
from ui.canvas.heatmap import ColourScale, DivergingScale, Map, heatmap
from ui.charts.bars import bars, labelled
from ui.charts.show import show
from ui.export import source, tables
from ui.text.number_text import percent, written
from ui.widgets.plain_table import plain_table

MAPS, CHAIN = "A head before and after", "From the loss to one head"
POSITIONS, MEMORY = "All positions at once", "Training and writing"
PARTS = (MAPS, CHAIN, POSITIONS, MEMORY)
STEPS = "pages/learn/who_sets_the_weights/experiment.py"


def what_moved(trained: FineTunedRun) -> None:
    """The chart of how far each kind of matrix moved."""
    show(charts.moved_chart, numbers.parts(trained), key="who_sets_the_weights_moved")


def notice(trained: FineTunedRun) -> str:
    """What to see in the picture, computed from it, as Markdown."""
    first, last = trained.losses[0], trained.losses[-1]
    table = numbers.parts(trained)
    most, least = numbers.most_and_least(table)
    embeddings = table[table["layer"] < 0].set_index("kind")[numbers.MOVED]["embeddings"]
    largest = run.RATES[-1]
    larger = (
        f" Try a learning rate of {largest:g}." if trained.settings.learning_rate < largest else ""
    )
    outcome = (
        f"The loss **fell** from {first:.3f} to {last:.3f}: the right next token has a probability "
        f"of {percent(math.exp(-last))} ({percent(math.exp(-first))} before; "
        f"geometric means).{larger}"
        if last < first
        else f"The loss **rose** from {first:.3f} to {last:.3f}: the learning rate is too large, "
        "and a step leaps over the lower loss. Choose a smaller one."
    )
    return (
        f"{outcome} Compared with its length, {most} moved most and {least} least; the embeddings, "
        f"which belong to no layer, moved by {percent(embeddings)}. Nearly all "
        f"{trained.n_numbers:,} weights take part."
    )


def maps(trained: FineTunedRun, layer: int, head: int) -> None:
    """A head's weights before the steps, after them, and the difference."""
    found = numbers.head_maps(trained, layer, head)
    name, difference = HeadId(layer, head), found.after - found.before
    scale = ColourScale(float(max(found.before.max(), found.after.max())))
    pictures: tuple[tuple[np.ndarray, str, ColourScale | DivergingScale, str], ...] = (
        (found.before, f"{name} before", scale, "weight"),
        (found.after, f"{name} after", scale, "weight"),
        (difference, "after − before", _signed(difference), "difference"),
    )
    for number, (column, (values, title, colours, kind)) in enumerate(
        zip(st.columns(3, gap="medium"), pictures, strict=True)
    ):
        with column:
            picture = Map(
                values, trained.labels, title, causal=True, scale=colours, value_name=kind
            )
            heatmap(picture, key=f"who_sets_the_weights_map_{number}")
    st.text(found.sentence)


def chain(trained: FineTunedRun, layer: int, head: int) -> None:
    """How the loss reaches W_q of one head, factor by factor."""
    found = numbers.chain(trained, layer, head)
    name = HeadId(layer, head)
    st.markdown(
        f"No signal names {name}. The chain rule takes the one loss back through every tensor: "
        "each gradient is the one above it, times one factor."
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        plain_table(found.table, "From the loss to W_q", {"length": "{:.3g}"})
        st.markdown(
            "The last two factors, multiplied here, give a gradient of length "
            f"**{written(found.product, '.4g')}**; autograd found "
            f"{written(found.by_head[head], '.4g')}."
        )
    with right:
        picture = Map(
            found.scores,
            trained.labels,
            f"gradient of the scores of {name}",
            causal=True,
            scale=_signed(found.scores),
            value_name="gradient",
        )
        heatmap(picture, key="who_sets_the_weights_scores")
        st.text(found.sentence)
    with st.expander("The same for every head of this layer, and the code"):
        table = labelled([f"H{number}" for number in range(len(found.by_head))], found.by_head)
        show(
            bars,
            table,
            "length of the gradient of its W_q",
            of="head",
            height=200,
            key="who_sets_the_weights_heads",
        )
        source.show(STEPS, "query_gradient")
        source.show(STEPS, "w_q_gradient")


def positions(trained: FineTunedRun) -> None:
    """The loss of every position: teacher forcing."""
    table = numbers.positions(trained)
    n_tokens = len(trained.labels)
    st.markdown(
        f"One pass guesses {n_tokens - 1} times: each position sees the tokens up to its own (the "
        "mask hides the rest) and says the next. It reads the true text on, whatever was guessed: "
        "**teacher forcing**."
    )
    show(charts.positions_chart, table, key="who_sets_the_weights_positions")
    hardest = table.loc[table[numbers.BEFORE].idxmax()]
    n_steps = trained.settings.n_steps
    steps = "the step" if n_steps == 1 else f"the {n_steps} steps"
    st.text(
        f"Hardest before {steps}: “{hardest['must say']}”. It got "
        f"{percent(hardest['p before'])}, and after {steps} "
        f"{percent(hardest['p after'])}. The loss is the mean over all {len(table)} places."
    )
    with st.expander("Every position in numbers"):
        forms = {"p before": "{:.3g}", "p after": "{:.3g}"}
        plain_table(table, "Every position", forms, most=300)
        tables.download("Download (CSV)", table, "losses.csv", key="who_sets_the_weights_losses")


def memory(trained: FineTunedRun, layer: int) -> None:
    """What training keeps that writing does not, and the other way round."""
    st.markdown("Training reads a text that is there; writing makes one, token by token.")
    plain_table(numbers.kept_bytes(trained), "Training and writing")
    change, largest = numbers.stale_keys(trained, layer)
    st.markdown(
        "**Why training has no KV cache**: one pass reads every token, so nothing is read twice. "
        f"The next pass has other weights: keys in layer {layer} change by up to "
        f"**{written(change, '.3g')}** (numbers up to {written(largest, '.3g')}), so kept ones "
        "would be wrong."
    )
    st.markdown(
        ":small[The first row is counted while autograd keeps the tensors. This page forgets each "
        "gradient once its matrix has moved; usual training holds all of them.]"
    )


def _signed(values: np.ndarray) -> DivergingScale:
    return DivergingScale(float(np.abs(values).max()) or 1.0)
