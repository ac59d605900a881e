"""The picture and the tabs of the page "Who sets the weights"."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from pages.learn.who_sets_the_weights import charts, numbers, run
from pages.learn.who_sets_the_weights.run import FineTunedRun
from serving.heads import HeadId
from ui.canvas.heatmap import ColourScale, DivergingScale, Map, heatmap
from ui.charts.bars import bars, label_table
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number, percent
from ui.widgets.plain_table import plain_table

MAPS, CHAIN = "A head before and after", "From the loss to one head"
POSITIONS, MEMORY = "All positions at once", "Training and generation"
PARTS = (MAPS, CHAIN, POSITIONS, MEMORY)
STEPS = "pages/learn/who_sets_the_weights/experiment.py"


def show_changes(tuning_run: FineTunedRun) -> None:
    """Chart how far each kind of matrix moved."""
    show(charts.changes_chart, numbers.parts(tuning_run), key="who_sets_the_weights_moved")


def notice(tuning_run: FineTunedRun) -> str:
    """Describe the picture, from its numbers, as Markdown."""
    first, last = tuning_run.losses[0], tuning_run.losses[-1]
    table = numbers.parts(tuning_run)
    most, least = numbers.most_and_least(table)
    embeddings = table[table["layer"] < 0].set_index("kind")[numbers.CHANGE]["embeddings"]
    largest = run.RATES[-1]
    larger = (
        f" Try a learning rate of {largest:g} to see what happens."
        if tuning_run.settings.learning_rate < largest
        else ""
    )
    outcome = (
        f"The loss **fell** from {first:.3f} to {last:.3f}. The correct next token now gets a "
        f"probability of {percent(math.exp(-last))}, up from {percent(math.exp(-first))} "
        f"(geometric means).{larger}"
        if last < first
        else f"The loss **rose** from {first:.3f} to {last:.3f}. The learning rate is too large, "
        "so a step overshoots the lower loss. Choose a smaller one."
    )
    return (
        f"{outcome}\n\n:small[Relative to its length, {most} moved most, and {least} moved least. "
        f"The embeddings moved by {percent(embeddings)}. Training adjusts nearly all "
        f"{tuning_run.n_numbers:,} weights.]"
    )


def maps(tuning_run: FineTunedRun, layer: int, head: int) -> None:
    """Show a head's weights before and after training, and the difference."""
    result = numbers.head_maps(tuning_run, layer, head)
    name, difference = HeadId(layer, head), result.after - result.before
    scale = ColourScale(float(max(result.before.max(), result.after.max())))
    pictures: tuple[tuple[np.ndarray, str, ColourScale | DivergingScale, str], ...] = (
        (result.before, f"{name} before", scale, "weight"),
        (result.after, f"{name} after", scale, "weight"),
        (difference, "after − before", _signed(difference), "difference"),
    )
    for number, (column, (values, title, colours, kind)) in enumerate(
        zip(st.columns(3, gap="medium"), pictures, strict=True)
    ):
        with column:
            picture = Map(
                values, tuning_run.labels, title, causal=True, scale=colours, value_name=kind
            )
            heatmap(picture, key=f"who_sets_the_weights_map_{number}")
    st.text(result.sentence)


def chain(tuning_run: FineTunedRun, layer: int, head: int) -> None:
    """Show how the loss reaches W_q of one head, factor by factor."""
    result = numbers.chain(tuning_run, layer, head)
    name = HeadId(layer, head)
    st.markdown(
        f"Nothing singles out {name}. The chain rule carries the loss back through every tensor, "
        "and each gradient is the previous one times one factor."
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        plain_table(result.table, "From the loss to W_q", {"length": "{:.3g}"})
        st.markdown(
            ":small[Check: the last two factors, multiplied here, give a gradient of length "
            f"**{format_number(result.product, '.4g')}**. PyTorch's autograd computed "
            f"{format_number(result.by_head[head], '.4g')}.]"
        )
    with right:
        picture = Map(
            result.scores,
            tuning_run.labels,
            f"gradient of {name}'s scores",
            causal=True,
            scale=_signed(result.scores),
            value_name="gradient",
        )
        heatmap(picture, key="who_sets_the_weights_scores")
        st.text(result.sentence)
    with st.expander("All heads of this layer, and the code"):
        table = label_table([f"H{number}" for number in range(len(result.by_head))], result.by_head)
        show(
            bars,
            table,
            "length of W_q's gradient",
            of="head",
            height=200,
            key="who_sets_the_weights_heads",
        )
        source.show(STEPS, "query_gradient")
        source.show(STEPS, "w_q_gradient")


def positions(tuning_run: FineTunedRun) -> None:
    """Show the loss of every position, with teacher forcing."""
    table = numbers.positions(tuning_run)
    n_tokens = len(tuning_run.labels)
    st.markdown(
        f"One pass makes {n_tokens - 1} predictions. Each position sees the tokens up to its own, "
        "because the mask hides the rest, and predicts the next one. The model then continues with "
        "the actual text instead of its own prediction. That's called **teacher forcing**."
    )
    show(charts.positions_chart, table, key="who_sets_the_weights_positions")
    hardest = table.loc[table[numbers.BEFORE].idxmax()]
    n_steps = tuning_run.settings.n_steps
    steps = "the step" if n_steps == 1 else f"the {n_steps} steps"
    st.text(
        f"“{hardest['next token']}” was the hardest token to predict. Its probability was "
        f"{percent(hardest['p before'])} before {steps} and {percent(hardest['p after'])} after. "
        f"The loss averages all {len(table)} positions."
    )
    with st.expander("Table of all positions"):
        forms = {"p before": "{:.3g}", "p after": "{:.3g}"}
        plain_table(table, "All positions", forms, max_rows=300)
        tables.download("Download CSV", table, "losses.csv", key="who_sets_the_weights_losses")


def memory(tuning_run: FineTunedRun, layer: int) -> None:
    """Compare what training and generation keep in memory."""
    st.markdown("Training reads a finished text. Generation writes a new one, token by token.")
    plain_table(numbers.memory_table(tuning_run), "Training and generation")
    change, largest = numbers.stale_keys(tuning_run, layer)
    st.markdown(
        "**Why training has no KV cache**: one pass reads every token, so nothing is computed "
        f"twice. The next pass has different weights. Keys in layer {layer} change by up to "
        f"**{format_number(change, '.3g')}** (the largest number is "
        f"{format_number(largest, '.3g')}), so "
        "cached keys would be wrong."
    )
    st.markdown(
        ":small[The first row counts the bytes that autograd stores. This page deletes each "
        "gradient as soon as its matrix has moved; normal training keeps all of them.]"
    )


def _signed(values: np.ndarray) -> DivergingScale:
    return DivergingScale(float(np.abs(values).max()) or 1.0)
