"""The sections of the page "Why several heads"."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.learn.why_several_heads import charts, cost, head_roles, splitting
from pages.learn.why_several_heads.two_heads import (
    AVERAGE,
    TwoHeads,
    attention_sentence,
    token_rows,
)
from serving import token_text
from serving.runs import Run
from ui.canvas.heatmap import ColourScale, LinkedCells, Map, clicked_cell, heatmap
from ui.charts.show import show
from ui.export import source, tables
from ui.frame import sections
from ui.text.formatting import format_number
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.progress import run_with_progress

CORE = "pages/learn/why_several_heads/experiment"
ONE_MAP, HEAD_SIZE = f"{CORE}/one_map.py", f"{CORE}/head_size.py"
DIVISION = f"{CORE}/division.py"
CODE = "Show the code"


def chosen_token(run: Run) -> int:
    """Ask for the query token; it resets to the last word when the text or model changes."""
    key, cut = "why_several_heads_token", (run.model, run.tokens.text)
    default = token_text.last_word_index(run.tokens)
    if key in st.session_state and st.session_state.get("why_several_heads_cut") != cut:
        st.session_state[key] = default
    st.session_state["why_several_heads_cut"] = cut
    return controls.number("Query token (row)", key, len(run.tokens), default)


def maps(heads: TwoHeads, token: int) -> None:
    """Show both heads' maps and their average on one scale; a click selects a query token.

    Pointing at a cell frames it in all three.
    """
    names = [*heads.names, AVERAGE]
    largest = float(heads.maps.max())
    pictures = [*heads.maps, heads.average]
    places = range(len(heads.tokens))
    link = LinkedCells("why_several_heads", rows=places, columns=places)
    for column, key, name, weights in zip(
        st.columns(3, gap="medium"), "abc", names, pictures, strict=True
    ):
        key = f"why_several_heads_map_{key}"

        def read(key: str = key) -> None:
            cell = clicked_cell(key)
            if cell is not None and cell[0] < len(heads.tokens):
                st.session_state["why_several_heads_token"] = cell[0]

        with column:
            picture = Map(
                weights,
                heads.tokens.labels,
                title=name,
                causal=heads.causal,
                scale=ColourScale(largest, square_root=True),
                framed_rows=(token,),
                link=link,
            )
            heatmap(picture, key=key, on_cell=read)


def one_token(heads: TwoHeads, numbers: tuple[int, int], token: int) -> None:
    """Show one token's weights in both heads and their average, and a single head's error."""
    left, right = st.columns(2, gap="large")
    with left:
        row = token_rows(heads, token)
        show(charts.row_chart, row, numbers, key="why_several_heads_row")
        n_shown, n_seen = row["place"].nunique(), token + 1 if heads.causal else len(heads.tokens)
        if n_shown < n_seen:
            st.markdown(f":small[Only the {n_shown} largest of {n_seen} keys are shown.]")
    with right:
        st.text(attention_sentence(heads, token))
        plain_table(heads.missed_by(token), "Error of a single head")
        st.markdown(
            "The **error** is the share of the two heads' output that a single head can't "
            "reproduce: the length of the difference divided by the length of the output."
        )
    with st.expander("All tokens, and the code"):
        table = heads.table
        left, right = st.columns(2, gap="large")
        with left:
            plain_table(table, "All tokens", max_rows=320)
            tables.download(
                "Download CSV", table, "why_several_heads.csv", key="why_several_heads_csv"
            )
        with right:
            source.show_lines(ONE_MAP, "attend_with_maps", "handed on")
            source.show_lines(ONE_MAP, "average_map", "average")
            source.show_lines(ONE_MAP, "attend_with_one_map", "handed on")
            source.show_lines(ONE_MAP, "missed_share", "difference", "length")


def price(run: Run, layer: int) -> None:
    """Show the size of a head and the noise of its scores when H heads share the width."""
    width, n_heads = run.tensors.states.shape[-1], run.tensors.weights.shape[1]
    options, key = cost.counts(run), "why_several_heads_count"
    if st.session_state.get(key, 1) not in options:  # selected for a model with a different width
        del st.session_state[key]
    count = linked(
        st.select_slider,
        f"Number of heads (H) for a width of C = {width}",
        options,
        n_heads if n_heads in options else options[-1],
        key=key,
    )
    try:
        noises = cost.noise(run, layer)
    except ValueError as error:
        messages.show_problem(error)
        return
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.noise_chart, cost.by_count(noises), count, key="why_several_heads_noise")
    with right:
        st.text(cost.trade(noises, count))
        plain_table(cost.prices(run, noises, count), "What heads cost")
        st.markdown(
            "Smaller heads compare tokens by fewer numbers, so their scores are noisier.\n\n"
            f":small[**Noise** is the root mean square error of the cosine c in layer {layer}, "
            f"over {cost.N_DRAWS} random matrices (bars: best to worst). The line is the "
            "theory, √(1 + c²) / √D.]"
        )
    with left, st.expander(CODE):
        source.show_lines(HEAD_SIZE, "score_noise", "scores", "errors")


def chosen_layer(run: Run) -> int:
    """Ask which layer's heads to compare; the default is the layer where they differ most.

    It's a list because a slider would start a run at every position it passes.
    """
    variety = head_roles.variety(run)
    layers = [str(layer) for layer in range(len(variety))]
    most = 0 if np.isnan(variety).any() else int(variety.argmax())
    key = "why_several_heads_compared"
    if st.session_state.get(key, "0") not in layers:  # selected for a model with more layers
        st.session_state[key] = layers[-1]
    choice = linked(st.selectbox, "Compare heads in layer", layers, most, key=key)
    return int(choice)


def division(run: Run, layer: int) -> None:
    """Show what each head of a layer attends to, and the distances of their maps."""
    if len(run.tokens) < 2:
        messages.show_problem(
            "With a single token, heads have nothing to choose. Type a longer text."
        )
        return
    table, distances = head_roles.role_shares(run, layer), head_roles.distances(run, layer)
    left, right = st.columns([5, 3], gap="large")
    with left:
        show(charts.roles_chart, table, key="why_several_heads_jobs")
        unlike = head_roles.difference_sentence(distances, head_roles.variety(run), layer)
        st.text(f"{head_roles.roles_sentence(table)}\n{unlike}")
        with st.expander(CODE):
            source.show_lines(DIVISION, "head_roles", "shares")
            source.show_lines(DIVISION, "map_distances", "differences")
    with right:
        picture = Map(
            distances,
            [f"H{head}" for head in range(len(distances))],
            title="Distance of two maps",
            causal=False,
            scale=ColourScale(1.0),
            value_name="distance",
            axes=("head", "head"),
        )
        heatmap(picture, key="why_several_heads_distances")


def losses_section(run: Run, layer: int) -> None:
    """Show what changes if a layer keeps only one head, or all but one."""
    losses = run_with_progress(
        "why_several_heads_off",
        (*run.key, layer),
        lambda report: head_roles.losses(run, layer, report),
        cached=head_roles.losses.is_cached(run, layer),
        total=2 * run.tensors.weights.shape[1] + 1,
        unit="runs",
        done=lambda result: f"{2 * len(result.off) + 1} runs took {result.seconds:.2f} s.",
    )
    if losses is None:
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        show(
            charts.losses_chart,
            losses.table,
            losses.without_any,
            losses.unit,
            key="why_several_heads_losses",
        )
    with right:
        st.text(head_roles.loss_sentence(losses, layer))
        with st.expander(CODE):
            source.show_lines(DIVISION, "disabled_sets", "other heads")
            source.show_lines(DIVISION, "losses", "resumed")


def in_code(run: Run, choice: HeadChoice, text: str) -> None:
    """Show the lecture's split with its reasons, and link to the page Shapes."""
    split = splitting.split(run, choice.layer)
    plain_table(split.table, "One product, a view, a transpose")
    left, right = st.columns([3, 2], gap="large")
    with left:
        source.show_lines("attention_core/heads.py", "split_heads", "view", "transpose")
    with right:
        st.text(
            "Check: one product per head gives the same queries. The largest difference is "
            f"{format_number(split.difference, '.1g')}."
        )
        place = {"of": choice.entry.spec.name, "words": text, "layer": choice.layer, "step": 5}
        st.page_link(
            sections.script("learn/shapes"),
            label="See every step, cell by cell: Shapes",
            icon=sections.ICONS["learn/shapes"],
            query_params={f"shapes_{name}": str(value) for name, value in place.items()},
        )
