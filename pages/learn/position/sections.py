"""Sections of the page "Position": sinusoids, learned, rotary, longer texts."""

from __future__ import annotations

from itertools import pairwise

import streamlit as st

from pages.learn.position import charts, context_extension, distances, rotation
from pretrained import CatalogEntry
from serving import models, runs
from serving.limits import MAX_LESSON_TOKENS
from ui.canvas.heatmap import DivergingScale, Map, heatmap
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number
from ui.text.isolated import isolated
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.pair import choose_pair
from ui.widgets.plain_table import plain_table
from ui.widgets.settings import settings

SINUSOIDS, LEARNED, ROTARY = "Sinusoids", "Learned", "Rotary"
LONGER = "Beyond the trained length"
MAP_HEIGHT = 384  # height of a map, in pixels
LEARNED_KINDS, ROTARY_KINDS = ("gpt2", "bert"), ("llama",)
TABLE_OF_2017 = "attention_core/model/original_transformer.py"
DISTANCES = "pages/learn/position/experiment/distances.py"
ROTATION, SCALING = "attention_core/positions/rotary.py", "attention_core/positions/scaling.py"


def show_sinusoids() -> None:
    """Show the sinusoidal table from the 2017 paper and the dot products of its rows."""
    st.markdown(
        "The original Transformer (2017) adds sines and cosines of the position to each token's "
        "vector, with fast waves on the left and slow ones on the right."
    )
    with st.container(horizontal=True, gap="medium"):
        width = linked(
            st.select_slider, "Columns C", distances.WIDTHS, 32, key="position_width", width=160
        )
        position = linked(
            st.slider, "Position", 0, distances.N_SINUSOIDS - 1, 10, key="position_row", width=160
        )
        distance = linked(st.slider, "Distance", 0, 20, 5, key="position_apart", width=160)
    result = distances.sinusoids(width)
    left, right = st.columns(2, gap="large")
    with left:
        picture = Map(
            result.table,
            [str(column) for column in range(width)],
            "position vectors",
            causal=False,
            scale=DivergingScale(1.0),
            row_labels=[str(row) for row in range(len(result.table))],
            value_name="number",
            axes=("position", "column"),
            row_height=MAP_HEIGHT // len(result.table),
        )
        heatmap(picture, key="position_sinusoids")
    with right:
        show(
            charts.products_chart,
            distances.products_from(result, position),
            distance,
            key="position_products",
        )
        means = result.by_distance["mean"]
        st.markdown(
            f"Any two positions that are {distance} apart have the dot product "
            f"**{means[distance]:.4f}**, to within {format_number(result.spread, '.1e')}. Over all "
            f"distances it ranges from {format_number(means.min(), '.2f')} to "
            f"{format_number(means.max(), '.2f')}."
        )
        with st.expander("The code"):
            source.show_lines(TABLE_OF_2017, "sinusoids", "angles", "sines and cosines")
            source.show_lines(DISTANCES, "dot_products", "products")


def show_learned(selected_entry: CatalogEntry | None) -> None:
    """Show the position table that a model has learned, compared by distance."""
    entry = _fitting(selected_entry, LEARNED_KINDS, "encoder")
    if entry is None:
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        return
    st.markdown(
        "GPT-2 and BERT learn a vector for each position, and so does "
        f"**{entry.spec.title}**. Nobody told it that positions 5 and 6 are neighbors."
    )
    count = linked(
        st.select_slider,
        "Number of positions",
        distances.COUNTS,
        64,
        key="position_count",
        width=320,
    )
    try:
        result = distances.learned_positions(entry.spec.name, count)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return
    left, right = st.columns(2, gap="large")
    names = [str(row) for row in range(len(result.cosines))]
    with left:
        picture = Map(
            result.cosines,
            names,
            "cosines of learned position vectors",
            causal=False,
            scale=DivergingScale(1.0),
            value_name="cosine",
            axes=("position", "position"),
            row_height=MAP_HEIGHT // len(names),
        )
        heatmap(picture, key="position_cosines")
    with right:
        show(charts.cosines_chart, result.by_distance, entry.spec.title, key="position_by_distance")
        far = len(names) // 2
        n_rows, width = result.shape
        means = result.means[1 : far + 1]
        steady = all(nearer >= farther for nearer, farther in pairwise(means))
        bumps = "" if steady else ", with ups and downs in between"
        st.markdown(
            f"Neighbors have a mean cosine of **{format_number(means[0], '.2f')}**, where 1 "
            "means the "
            f"same direction. Positions {far} apart have "
            f"**{format_number(means[-1], '.2f')}**{bumps}, "
            "so the model learned the order. But pairs at the same distance differ by up to "
            f"{result.spread:.2f} (the band). The table has {n_rows} rows of {width} numbers, so "
            f"there's no vector for position {n_rows}."
        )
        with st.expander("The code"):
            source.show_lines(DISTANCES, "cosines", "directions", "cosines")


def chosen_vectors(selected_entry: CatalogEntry | None, text: str) -> rotation.Vectors | None:
    """A query and a key of a model with rotary positions, or None after a message."""
    entry = _fitting(selected_entry, ROTARY_KINDS, "decoder")
    if entry is None:
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        return None
    spec = entry.spec
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        caption = st.container()
        with settings():
            choice = controls.head_for_text(entry, "position", text)
            of_pair = st.container()
    try:
        with st.spinner("Running the model …", show_time=True):
            run = runs.run(spec.name, text, MAX_LESSON_TOKENS, "this page")
        with of_pair:
            query, key = choose_pair(run, choice, "position", ("Query token", "Key token"))
        of_query, of_key = (isolated(run.tokens.labels[place]) for place in (query, key))
        caption.text(f"The query of “{of_query}” and the key of “{of_key}” in {choice.title}:")
        return rotation.vectors(run, choice.layer, choice.head, query, key)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return None


def show_rotary(vectors: rotation.Vectors) -> None:
    """Show the rotated query and key, and their score at any distance."""
    st.markdown(
        "Rotary positions (RoFormer, 2021) **rotate** each pair of numbers in a query or key (one "
        "circle each) by an angle that grows with the position. Queries and keys rotate at the "
        "same speed, so the score depends only on their distance."
    )
    left, right = st.columns([2, 3], gap="large")
    with left:
        place = linked(
            st.select_slider, "Position of the key", rotation.N_POSITIONS, 20, key="position_place"
        )
        distance = linked(
            st.slider, "Distance", 0, rotation.MAX_DISTANCE, 1, key="position_distance"
        )
        here = rotation.rotate_at(vectors, place, distance)
        show(charts.arrows_chart, here.arrows, key="position_arrows")
    with right:
        table = rotation.by_distance(vectors, place)
        show(charts.score_chart, table, distance, key="position_scores")
        at_start = table[table["key at"] == "position 0"]["score"]
        st.markdown(
            f"The score is **{format_number(here.score, '.3f')}** with the key at position "
            f"{place:,} and "
            f"the query at {place + distance:,}. If you move both, the arrows rotate, but the "
            f"score changes by at most {format_number(here.change, '.1e')} up to position "
            f"{here.farthest:,} (rounding). If you change the distance, it ranges from "
            f"{format_number(at_start.min(), '.1f')} to {format_number(at_start.max(), '.1f')}."
        )
    with st.expander("Every pair of numbers and the code"):
        forms = {name: "{:.6g}" for name in here.pairs.columns if name != "pair"}
        plain_table(here.pairs, "Every pair of numbers", forms, max_rows=320)
        tables.download("Download (CSV)", here.pairs, "rotary_pairs.csv", key="position_pairs_csv")
        source.show_lines(ROTATION, "rotary_angles", "angles", "both halves")
        source.show_lines(ROTATION, "rotate", "rotated")


def show_longer(vectors: rotation.Vectors) -> None:
    """Show the slow pairs in texts beyond the trained length, with scaling."""
    length, scalings = vectors.trained_length, context_extension.classes()
    with st.container(horizontal=True, gap="medium"):
        factor = linked(
            st.select_slider,
            "Text length (× trained length)",
            context_extension.FACTORS,
            4,
            key="position_factor",
            width=200,
        )
        choice = linked(
            st.selectbox, "Scaling", list(scalings), index=2, key="position_scaling", width=200
        )
    slow = context_extension.slow_pairs(vectors, factor, choice)
    st.markdown(
        f"The model was trained on texts of up to {length:,} tokens. Within that length "
        f"{slow.n_slow} of its {vectors.head_size // 2} pairs don't complete a full turn (right of "
        "the dashed line). Longer texts bring angles that it never saw, so a **scaling** method "
        "slows these pairs down."
    )
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.reach_chart, context_extension.reach(vectors, factor), key="position_reach")
    with right:
        show(charts.slow_chart, slow.curves, length, slow.low, slow.high, key="position_slow")
    st.markdown(
        f"Within the trained length the slow pairs add {format_number(slow.low, '.1f')} to "
        f"{format_number(slow.high, '.1f')} to this score (the band). In a text {factor} times "
        "as long "
        f"they leave that range by up to **{slow.plain_outside:.1f}** without scaling and "
        f"**{slow.scaled_outside:.1f}** with {choice}."
    )
    with st.expander("All scaling methods in numbers, and the code"):
        table = context_extension.every_scaling(vectors.head_size, vectors.theta, length, factor)
        forms = dict.fromkeys(("fastest pair ÷", "slowest pair ÷", "cosines ×"), "{:.3f}")
        forms |= dict.fromkeys(
            ("difference from transformers", "difference with a cache"), "{:.1e}"
        )
        plain_table(table, "Scaling methods in numbers", forms)
        st.markdown(
            ":small[**Difference from transformers** is the relative difference of the "
            "frequencies. **Difference with a cache** is the largest change of the logits when a "
            f"small random model reads "
            f"{context_extension.SMALL_FACTOR * context_extension.SMALL_TRAINED} tokens "
            f"(trained length {context_extension.SMALL_TRAINED}) one by one. Dynamic NTK slows "
            "the pairs down "
            "as the text grows, but cached keys keep their old rotation.]"
        )
        tables.download("Download (CSV)", table, "scalings.csv", key="position_scalings_csv")
        source.show(SCALING, f"{scalings[choice]}.frequencies")


def _fitting(
    selected_entry: CatalogEntry | None, kinds: tuple[str, ...], role: str
) -> CatalogEntry | None:
    """The chosen model if its architecture is in `kinds`, otherwise one that has it, or None."""
    entries = [entry for entry in models.available() if entry.spec.architecture in kinds]
    by_name = {entry.spec.name: entry for entry in entries}
    for name in (
        selected_entry.spec.name if selected_entry else "",
        models.preferred(role) or "",
        *by_name,
    ):
        if name in by_name:
            return by_name[name]
    return None
