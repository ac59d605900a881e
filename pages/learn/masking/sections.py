"""Sections of the page "Masking and dropout"."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.learn.masking import charts, numbers
from serving import models
from serving.limits import MAX_SEED, MAX_SMALL_TOKENS
from ui.canvas.tensors import Panel, Quantity, tensors
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number
from ui.text.isolated import isolated
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.section_picker import section_picker
from ui.widgets.visit import unused_text_note

SIX, NINE, SENTENCE = "six tokens", "nine tokens", "my sentence"
ORDERS, LEAK = "Two orders, one result", "What another number lets through"
DROPOUT = "Dropout"
FILLS = ("0", "-1", "-2", "-5", "-10", "-20", "-50", "-100", "-inf")
WEIGHTS, MATRIX = "the masked weights", "random numbers"
MASKING, ATTEND = (
    "pages/learn/masking/experiment/mask_orders.py",
    "attention_core/attend.py",
)


def chosen_scores(kind: str) -> numbers.Scores | None:
    """The chosen scores, or None after a message if there aren't any."""
    if kind in (SIX, NINE):
        unused_text_note("a lecture's own tokens", "under “my sentence”")
        if kind == NINE:
            st.markdown(
                ":small[The lectures made up these vectors. The first six tokens reuse the vectors "
                "of the six-token example “Your journey starts with one step”, so their scores are "
                "the same.]"
            )
        return numbers.example("journey" if kind == SIX else "boy")
    if not models.available():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        return None
    text = controls.text("Sentence", "masking_text", controls.NEXT_DAY)
    choice = controls.head("masking", prefer="decoder", text=text)
    try:
        with st.spinner(f"Running {choice.entry.spec.title} …", show_time=True):
            scores = numbers.head_scores(choice.entry.spec.name, choice.layer, choice.head, text)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return None
    first = controls.window(
        "masking_first", len(scores.labels), MAX_SMALL_TOKENS, "treated as the whole text"
    )
    return scores.part(first, MAX_SMALL_TOKENS)


def next_token(count: int) -> None:
    """Show one more token; after the last one, start over."""
    st.session_state["masking_tokens"] = st.session_state["masking_tokens"] % count + 1


def redraw() -> None:
    """Draw again with the next seed."""
    st.session_state["masking_seed"] = (st.session_state["masking_seed"] + 1.0) % (MAX_SEED + 1)


def show_all(scores: numbers.Scores) -> None:
    """Show the growing triangle and the chosen section below it."""
    labels, count = scores.labels, len(scores.labels)
    if st.session_state.get("masking_tokens", 1) > count:
        st.session_state["masking_tokens"] = count
    with st.container(horizontal=True, vertical_alignment="bottom"):
        so_far = linked(
            st.select_slider,
            "Tokens so far",
            range(1, count + 1),
            min(4, count),
            key="masking_tokens",
            disabled=count == 1,
        )
        st.button("Add next token", on_click=next_token, args=(count,), key="masking_next")
    triangle, words = st.columns(2, gap="large")
    with triangle, st.container(height=24 * count + 130, border=False):
        tensors([numbers.growing_panel(scores, so_far)], key="masking_triangle")
    with words:
        plain_table(
            numbers.visibility_table(labels), "Visible tokens", max_rows=tables.height_for(count)
        )
        st.text(
            f"“{isolated(labels[so_far - 1])}” is the newest token and may see "
            f"{numbers.positions(so_far)}."
        )

    shown = section_picker("masking_part", (ORDERS, LEAK, DROPOUT))
    if ORDERS in shown:
        two_orders(scores)
    if LEAK in shown:
        another_number(scores)
    if DROPOUT in shown:
        show_dropout(numbers.ways(scores).before.numpy(), labels)


def two_orders(scores: numbers.Scores) -> None:
    """Show that masking before or after the softmax gives the same weights."""
    st.subheader(ORDERS)
    st.markdown(
        "You can apply the softmax first, set the future to 0 and divide each row by its sum. Or "
        "you can set the future to −∞ first and then apply the softmax. Models mask first, because "
        "then every row already sums to 1."
    )
    labels, masked = scores.labels, numbers.ways(scores)
    panels = (
        numbers.square("softmax over all", masked.unmasked, labels),
        numbers.square("future set to 0", masked.zeroed, labels),
        numbers.square("divided by the row's sum", masked.renormalised, labels),
        numbers.square("−∞ before the softmax", masked.before, labels),
    )
    tensors(panels, key="masking_orders")
    st.metric("Largest difference between the last two", format_number(masked.difference, ".1e"))
    with st.expander("Row sums and the code"):
        st.dataframe(numbers.sums(masked, labels), hide_index=True)
        source.show_lines(MASKING, "renormalise", "normalized")
        source.show_lines(ATTEND, "mask_scores", "masked")


def another_number(scores: numbers.Scores) -> None:
    """Show the weights of forbidden keys if their scores are finite."""
    st.subheader(LEAK)
    st.markdown(
        "Only exp(−∞) is exactly zero. With any other number, each forbidden key still gets a "
        "share of the attention. A lot of code uses a large negative number such as −10⁹ instead. "
        "That works because float32 rounds the tiny share to zero."
    )
    fill = linked(st.select_slider, "Value of forbidden scores", FILLS, "0", key="masking_fill")
    labels, masked = scores.labels, numbers.ways(scores, float(fill))
    tensors(
        [
            numbers.square(
                "scores with this value", masked.filled_scores, labels, quantity="scores"
            ),
            numbers.square("weights", masked.filled, labels),
            Panel(
                "leaked",
                masked.leaked[:, None].numpy(),
                ("query", "sum"),
                labels,
                ["Σ"],
                quantity="weights",
            ),
        ],
        key="masking_leak",
    )
    st.metric("Weight on future tokens, all rows", format_number(float(masked.leaked.sum()), ".4g"))
    table = numbers.leaks(masked, labels)
    with st.expander("Leaked weight by query"):
        st.dataframe(table, hide_index=True)
        tables.download("Download (CSV)", table, "leak.csv", key="masking_csv")


def show_dropout(weights: np.ndarray, labels: Sequence[str]) -> None:
    """Show dropout on the masked weights or on a random matrix."""
    st.subheader(DROPOUT)
    st.markdown(
        "A network in training tends to rely on a few strong weights, like a team that relies on "
        "its one star player. Dropout benches a few random players at every step, so the rest of "
        "the team learns to play. A row can even lose all its weights by chance, and then its "
        "token gets no information from the others."
    )
    left, middle, right, button = st.columns([3, 2, 1, 1], vertical_alignment="bottom")
    with left:
        matrix = linked(
            st.segmented_control,
            "Apply dropout to",
            [WEIGHTS, MATRIX],
            default=MATRIX,
            required=True,
            key="masking_what",
        )
    with middle:
        p = linked(st.slider, "Dropout probability p", 0.1, 0.9, 0.5, 0.1, key="masking_p")
    with right:
        seed = controls.seed("Seed", "masking_seed", 123)
    button.button("Draw again", on_click=redraw, key="masking_redraw")
    dropped = numbers.draw(weights if matrix == WEIGHTS else None, p, seed)
    names = labels if matrix == WEIGHTS else None
    keys = [str(key) for key in range(dropped.before.shape[1])]
    axes = ("query", "key") if matrix == WEIGHTS else ("row", "column")
    quantity: Quantity = "weights" if matrix == WEIGHTS else ""
    tensors(
        [
            Panel("before", dropped.before.numpy(), axes, names, keys, quantity=quantity),
            Panel("kept (1) or dropped (0)", dropped.keep_mask.numpy(), axes, names, keys),
            Panel("after", dropped.after.numpy(), axes, names, keys, quantity=quantity),
            Panel("row sums", dropped.row_sums.numpy(), (axes[0], "sum"), names, ["Σ"]),
        ],
        key="masking_dropped",
    )
    there = dropped.before != 0  # masked weights were already 0
    kept = int(dropped.keep_mask[there].sum())
    what = "weights" if matrix == WEIGHTS else "numbers"
    st.markdown(
        f"Dropout kept **{kept}** of {int(there.sum())} {what} and multiplied them by "
        f"**{format_number(1 / (1 - p), '.4g')}**."
    )
    source.show_lines(
        "pages/learn/masking/experiment/dropout_draws.py", "apply_dropout", "after dropout"
    )

    st.subheader("The average of many draws")
    st.markdown(
        "Each draw keeps different cells. Because the kept cells are multiplied by 1/(1 − p), the "
        "average of many draws equals the matrix without dropout. So the trained model can simply "
        "run without dropout, and nothing has to be rescaled."
    )
    table = numbers.average(dropped.before.numpy(), p, seed)
    show(charts.convergence, table, key="masking_chart")
    with st.expander("Chart data"):
        st.dataframe(table, hide_index=True)
        tables.download("Download (CSV)", table, "dropout.csv", key="masking_draws_csv")
