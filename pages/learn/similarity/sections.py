"""The tabs of the page "Similarity" below its first picture."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.learn.similarity import dims, heads, texts
from pages.learn.similarity.heads import HeadOnText
from serving import models
from serving.limits import MAX_TEXT_CHARACTERS
from ui.canvas.heatmap import ColourScale, DivergingScale, Map, heatmap
from ui.charts.bars import bars
from ui.charts.show import show
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

REASONS, MATRICES = "Why not x·xᵀ?", "What W_q, W_k, W_v change"
TEXTS, DIM = "Two kinds of weights", "Which dim?"
SCORES = "pages/learn/similarity/experiment/scores.py"
DIMS = "pages/learn/similarity/experiment/softmax_dims.py"
WHOLE = ColourScale(1.0)
MOST_ROWS = 32  # with more bars than this, the bar chart is vertical
OTHER = controls.ANIMAL.replace("tired", "wide")


def reasons(subject: HeadOnText, word: int) -> None:
    """Show five reasons against softmax(x·xᵀ): two maps, one row in all heads, and a table."""
    plain = subject.variants.plain.weights.float().cpu().numpy()
    real = subject.variants.head.weights.float().cpu().numpy()
    left, middle, right = st.columns(3, gap="medium")
    causal = subject.run.causal
    for number, (column, title, weights) in enumerate(
        ((left, "softmax(x·xᵀ)", plain), (middle, f"{subject.name}: softmax(q·kᵀ)", real))
    ):
        with column:
            heatmap(
                Map(weights, subject.labels, title, causal, WHOLE, framed_rows=(word,)),
                key=f"similarity_weights_{number}",
            )
    with right:
        rows = np.concatenate([plain[word][None], subject.layer_weights[:, word].numpy()])
        heatmap(
            Map(
                rows,
                subject.labels,
                "The framed row in all heads",
                False,
                WHOLE,
                row_labels=["x·xᵀ", *(f"head {number}" for number in range(len(rows) - 1))],
                framed_rows=(subject.number + 1,),
                axes=("head", "key"),
                row_height=18,
            ),
            key="similarity_every_head",
        )
    plain_table(heads.reasons(subject, word), "Five reasons against x·xᵀ")
    source.show_lines(SCORES, "score_variants", "plain", "learned")


def matrices(subject: HeadOnText) -> None:
    """Show the scores of the same x without learned matrices, with one and with two."""
    ways = subject.variants
    scores = {heads.PLAIN: ways.plain, heads.SAME: ways.same, heads.HEAD: ways.head}
    columns = st.columns(3, gap="medium")
    for number, (column, (name, record)) in enumerate(zip(columns, scores.items(), strict=True)):
        values = record.scores.float().cpu().numpy()
        with column:
            heatmap(
                Map(
                    values,
                    subject.labels,
                    title=f"Scores {name}",
                    causal=False,
                    scale=DivergingScale(float(np.abs(values).max())),
                    value_name="score",
                ),
                key=f"similarity_scores_{number}",
            )
    forms = {"asymmetry": "{:.3f}", "weight on itself": "{:.3f}"}
    plain_table(heads.measures(subject), "What the matrices change", forms)
    st.markdown(
        ":small[Asymmetry: the sum of |s_ij − s_ji| over all pairs, divided by the sum of "
        "|s_ij| + |s_ji|. With W_k as the only matrix it stays 0; only two matrices make scores "
        "differ by direction.]"
    )
    st.text(heads.value_sentence(subject))
    with st.expander("Nearest tokens as x, query, key and value"):
        plain_table(heads.nearest(subject), "Nearest other token", max_rows=300)
    source.show_lines(SCORES, "asymmetry", "asymmetry")


def two_texts(subject: HeadOnText, choice: HeadChoice) -> None:
    """Compare two texts: parameters stay the same, attention weights change."""
    other = linked(
        st.text_input, "Second text", OTHER, key="similarity_other", max_chars=MAX_TEXT_CHARACTERS
    )
    try:
        second = heads.head(choice, other)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return
    left, right = st.columns(2, gap="large")
    for column, which, on in ((left, "first", subject), (right, "second", second)):
        with column:
            weights = on.variants.head.weights.float().cpu().numpy()
            heatmap(
                Map(
                    weights,
                    on.labels,
                    title=f"Attention weights, {which} text",
                    causal=on.run.causal,
                    scale=WHOLE,
                ),
                key=f"similarity_text_{which}",
            )
    st.text(texts.notice(subject, second))
    plain_table(texts.changes(subject, second), "What changes with the text")
    source.show_lines(SCORES, "n_changed", "changed")


def softmax_dims(subject: HeadOnText) -> None:
    """Apply the layer's softmax over each dimension of its scores."""
    name = linked(
        st.segmented_control,
        "Softmax over the keys (dim=-1), the queries (dim=-2) or the heads (dim=-3)",
        list(dims.CHOICES),
        default="dim=-1",
        required=True,
        key="similarity_dim",
    )
    made = dims.dims(subject, dims.CHOICES[name])
    left, right = st.columns(2, gap="large")
    with left:
        heatmap(
            Map(
                made.weights,
                subject.labels,
                title=f"{subject.title}: softmax, {name}",
                causal=subject.run.causal,
                scale=WHOLE,
            ),
            key="similarity_dim_map",
        )
    with right:
        show(
            bars,
            made.row_sums,
            "row sum",
            horizontal=len(subject.labels) <= MOST_ROWS,
            height=400,
            of="query",
            key="similarity_sums",
        )
    plain_table(made.table, "Sums after each softmax")
    st.text(dims.future(subject))
    source.show_lines(DIMS, "softmax_over", "weights")
