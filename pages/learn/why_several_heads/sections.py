"""The sections of the page "Why several heads"."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.learn.why_several_heads import charts, cost, labour, splitting
from pages.learn.why_several_heads.readings import TwoHeads, row_of, where_it_looks
from serving import token_text
from serving.runs import Run
from ui.canvas.heatmap import ColourScale, Linked, Map, heatmap, picked
from ui.charts.show import show
from ui.export import source, tables
from ui.frame import sections
from ui.text.number_text import written
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.progress import watched

CORE = "pages/learn/why_several_heads/experiment"
ONE_MAP, HEAD_SIZE = f"{CORE}/one_map.py", f"{CORE}/head_size.py"
DIVISION = f"{CORE}/division.py"
CODE = "The lines that computed this"


def chosen_token(run: Run) -> int:
    """The token whose row is read: at first, and when the text is cut anew, its last word."""
    key, cut = "why_several_heads_token", (run.model, run.tokens.text)
    default = token_text.last_word(run.tokens)
    if key in st.session_state and st.session_state.get("why_several_heads_cut") != cut:
        st.session_state[key] = default
    st.session_state["why_several_heads_cut"] = cut
    return controls.number("Token that looks (a row)", key, len(run.tokens), default)


def maps(heads: TwoHeads, token: int) -> None:
    """The maps of both heads and their average, on one scale; a click reads another token.

    A cell that is pointed at is framed in all three.
    """
    names = [*heads.names, "average of both"]
    largest = float(heads.maps.max())
    pictures = [*heads.maps, heads.average]
    places = range(len(heads.tokens))
    link = Linked("why_several_heads", rows=places, columns=places)
    for column, key, name, weights in zip(
        st.columns(3, gap="medium"), "abc", names, pictures, strict=True
    ):
        key = f"why_several_heads_map_{key}"

        def read(key: str = key) -> None:
            cell = picked(key)
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
    """What both heads and the average give one token, and what the one head misses."""
    left, right = st.columns(2, gap="large")
    with left:
        row = row_of(heads, token)
        show(charts.row_chart, row, numbers, key="why_several_heads_row")
        n_shown, n_seen = row["place"].nunique(), token + 1 if heads.causal else len(heads.tokens)
        if n_shown < n_seen:
            st.markdown(f":small[Shown: the {n_shown} keys of {n_seen} with the largest weights.]")
    with right:
        st.text(where_it_looks(heads, token))
        plain_table(heads.missed_by(token), "What one head misses")
        st.markdown(
            ":small[The one head has as many numbers as both heads together, and the values of "
            "both. Missed: the length of the difference, divided by the length of what the two "
            "heads hand on.]"
        )
    with st.expander("Every token, and the code"):
        table = heads.table
        left, right = st.columns(2, gap="large")
        with left:
            plain_table(table, "Every token", most=320)
            tables.download(
                "Download (CSV)", table, "why_several_heads.csv", key="why_several_heads_csv"
            )
        with right:
            source.step(ONE_MAP, "hand_on", "handed on")
            source.step(ONE_MAP, "average_map", "average")
            source.step(ONE_MAP, "hand_on_with_one_map", "handed on")
            source.step(ONE_MAP, "missed", "difference", "length")


def price(run: Run, layer: int) -> None:
    """How large a head is, and how noisy its scores are, when H heads share the width."""
    width, n_heads = run.tensors.states.shape[-1], run.tensors.weights.shape[1]
    options, key = cost.counts(run), "why_several_heads_count"
    if st.session_state.get(key, 1) not in options:  # of a model of another width
        del st.session_state[key]
    count = linked(
        st.select_slider,
        f"Heads H that share the width C = {width}",
        options,
        n_heads if n_heads in options else options[-1],
        key=key,
    )
    try:
        noises = cost.noise(run, layer)
    except ValueError as error:
        messages.problem(error)
        return
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.noise_chart, cost.by_count(noises), count, key="why_several_heads_noise")
    with right:
        st.text(cost.trade(noises, count))
        plain_table(cost.prices(run, noises, count), "What heads cost")
        st.markdown(
            f":small[Your tokens, as they enter layer {layer}, are read through random columns, as "
            "before training. A score should be the cosine c of two vectors; noise is how far it "
            f"is off (root mean square, {cost.N_DRAWS} draws, bars from best to worst). Line: "
            "theory, √(1 + c²) / √D.]"
        )
    with left, st.expander(CODE):
        source.step(HEAD_SIZE, "score_noise", "scores", "errors")


def chosen_layer(run: Run) -> int:
    """The layer whose heads are compared; at first the one in which they differ most.

    A list: a slider would switch heads off at every notch.
    """
    variety = labour.variety(run)
    layers = [str(layer) for layer in range(len(variety))]
    most = 0 if np.isnan(variety).any() else int(variety.argmax())
    key = "why_several_heads_compared"
    if st.session_state.get(key, "0") not in layers:  # of a model with more layers
        st.session_state[key] = layers[-1]
    chosen = linked(st.selectbox, "Layer whose heads are compared", layers, most, key=key)
    return int(chosen)


def division(run: Run, layer: int) -> None:
    """What each head of a layer looks at, and how unlike their maps are."""
    if len(run.tokens) < 2:
        messages.problem("In a text of one token no head has a choice. Type another.")
        return
    table, distances = labour.jobs(run, layer), labour.distances(run, layer)
    left, right = st.columns([5, 3], gap="large")
    with left:
        show(charts.jobs_chart, table, key="why_several_heads_jobs")
        unlike = labour.how_unlike(distances, labour.variety(run), layer)
        st.text(f"{labour.who_does_what(table)}\n{unlike}")
        with st.expander(CODE):
            source.step(DIVISION, "jobs", "shares")
            source.step(DIVISION, "map_distances", "differences")
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


def left_with_one(run: Run, layer: int) -> None:
    """What the model loses when a layer keeps one head, or all but one."""
    losses = watched(
        "why_several_heads_off",
        (*run.key, layer),
        lambda report: labour.losses(run, layer, report),
        kept=labour.losses.is_cached(run, layer),
        total=2 * run.tensors.weights.shape[1] + 1,
        unit="runs of the text",
        done=lambda result: (
            f"{2 * len(result.off) + 1} runs of the text took {result.seconds:.2f} s."
        ),
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
        st.text(labour.what_is_lost(losses, layer))
        with st.expander(CODE):
            source.step(DIVISION, "switched_off", "other heads")
            source.step(DIVISION, "losses", "resumed")


def in_code(run: Run, choice: HeadChoice, text: str) -> None:
    """The lecture's split, with its reasons, and the way to the page that shows it cell by cell."""
    split = splitting.split(run, choice.layer)
    plain_table(split.table, "One product, a view, a transpose")
    left, right = st.columns([3, 2], gap="large")
    with left:
        source.step("attention_core/heads.py", "split_heads", "view", "transpose")
    with right:
        st.text(
            "A product for each head gives the same queries: the largest difference is "
            f"{written(split.difference, '.1g')}."
        )
        place = {"of": choice.entry.spec.name, "words": text, "layer": choice.layer, "step": 5}
        st.page_link(
            sections.script("learn/shapes"),
            label="Every step, cell by cell: Shapes",
            icon=sections.ICONS["learn/shapes"],
            query_params={f"shapes_{name}": str(value) for name, value in place.items()},
        )
