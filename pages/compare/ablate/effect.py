"""The effect of switching heads off on the page "Ablate": claim, chart and table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.compare.ablate import charts, runs
from pages.compare.ablate.runs import AblationTarget, Effect
from serving import models, token_text
from ui.charts.bars import bars, label_table
from ui.charts.show import show
from ui.export import tables
from ui.text.formatting import format_number, percent
from ui.text.isolated import isolated
from ui.widgets.plain_table import plain_table

TOP = 10
ROTATED = "1 − cosine of the hidden state with the unchanged one"
MANY_TOKENS = 24
BEFORE, AFTER = "p before", "p after"  # columns of probabilities
_FORMATS = {BEFORE: "{:#.3g}", AFTER: "{:#.3g}", "Δ log p": "{:+.2f}", "id": "{}"}


def describe_question(question: AblationTarget) -> str:
    """What the model predicts here, as a line of plain text."""
    if question.position is None:
        return f"{question.title} has no masked-word head, so we compare its hidden states."
    label = isolated(question.tokens.labels[question.position])
    if question.mode == "next":
        return f"{question.title} predicts the token after position {question.position}, “{label}”."
    if question.ids[question.position] == question.tokens.ids[question.position]:
        return f"{question.title} predicts the word masked at position {question.position}."
    return f"{question.title} reads [MASK] instead of “{label}” at position {question.position}."


def claim(question: AblationTarget, changed: Effect, heads: Sequence[str], n_heads: int) -> str:
    """The page's opening sentence about the chosen heads, as plain text.

    n_heads: the number of heads in the model.
    """
    if not heads:
        return "Switch off a head to see what it does for the prediction."
    which = "one head" if len(heads) == 1 else f"{len(heads)} heads"
    start = f"Switch off {which} out of {n_heads}"
    if changed.before is None or changed.after is None:
        return f"{start} and the hidden states change: the mean 1 − cosine is {changed.size:.4f}."
    top = int(changed.before.argmax())
    verb = "still predicts" if top == int(changed.after.argmax()) else "forgets"
    token = isolated(token_text.piece(models.get(question.model).tokenizer, top))
    before, after = (
        percent(np.exp(float(log_p[top]))) for log_p in (changed.before, changed.after)
    )
    change = "falls" if changed.after[top] < changed.before[top] else "rises"
    return (
        f"{start} and the model {verb} “{token}”. "
        f"Its probability {change} from {before} to {after}."
    )


def effect(question: AblationTarget, changed: Effect) -> None:
    """Show the effect of the chosen heads: numbers, chart, table and download."""
    if question.position is None:
        _states(question, changed)
    else:
        _predictions(question, changed)


def predictions_table(question: AblationTarget, changed: Effect) -> pd.DataFrame:
    """The most likely tokens before and after, sorted by their probability before.

    Raises: ValueError for an effect on hidden states, which has no predictions.
    """
    before, after = changed.before, changed.after
    if before is None or after is None:
        raise ValueError("this effect has hidden states, not predictions")
    ids = np.union1d(np.argsort(-before)[:TOP], np.argsort(-after)[:TOP])
    ids = ids[np.argsort(-before[ids], kind="stable")]
    return pd.DataFrame(
        {
            "token": token_text.pieces(models.get(question.model).tokenizer, ids.tolist()),
            BEFORE: np.exp(before[ids], dtype=np.float64),
            AFTER: np.exp(after[ids], dtype=np.float64),
            "Δ log p": after[ids] - before[ids],
            "rank before": [int((before > before[i]).sum()) + 1 for i in ids],
            "rank after": [int((after > after[i]).sum()) + 1 for i in ids],
            "id": ids,
        }
    )


def _predictions(question: AblationTarget, changed: Effect) -> None:
    table = predictions_table(question, changed)
    first, last = table.loc[table[BEFORE].idxmax()], table.loc[table[AFTER].idxmax()]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show(charts.predictions, charts.long_table(table), key="ablate_predictions")
    with right:
        cells = st.columns(2)
        cells[0].metric("Divergence (nats)", f"{changed.size:.3f}")
        change = round(changed.second, 2) + 0.0  # adding 0.0 avoids −0.00
        cells[1].metric("Change of top logit", format_number(change, "+.2f"))
        # metrics render Markdown, so tokens are shown as plain text
        st.text(
            f"Most likely with all heads on: “{isolated(first['token'])}”, "
            f"{percent(first[BEFORE])} (now {percent(first[AFTER])}).\n"
            f"Most likely now: “{isolated(last['token'])}”, {percent(last[AFTER])} "
            f"(before: {percent(last[BEFORE])})."
        )
        plain_table(table, "The most likely tokens", _FORMATS, max_rows=178)
        name = f"{question.model}_ablation.csv"
        tables.download("Download predictions (CSV)", table, name, key="ablate_csv")


def states_table(question: AblationTarget, changed: Effect) -> pd.DataFrame:
    """How the hidden state of each token changes, one row per token."""
    return pd.DataFrame(
        {
            "position": range(len(question.tokens)),
            "token": question.tokens.labels,
            "1 − cosine": changed.cosine,
            "relative distance": changed.relative,
        }
    )


def rotation_table(table: pd.DataFrame) -> pd.DataFrame:
    """The change of direction of each token in `states_table`, as bars."""
    return label_table(table["token"], table["1 − cosine"])


def bar_orientation(table: pd.DataFrame) -> dict[str, Any]:
    """Orientation of the bars of `rotation_table`: vertical for long texts, so that they fit."""
    return {"horizontal": len(table) <= MANY_TOKENS, "height": 440}


def _states(question: AblationTarget, changed: Effect) -> None:
    table = states_table(question, changed)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show(bars, rotation_table(table), ROTATED, **bar_orientation(table), key="ablate_states")
    with right:
        cells = st.columns(2)
        cells[0].metric("Mean 1 − cosine", f"{changed.size:.4f}")
        cells[1].metric("Mean relative distance", f"{changed.second:.4f}")
        plain_table(table, "Change of each token", {"1 − cosine": "{:.5f}"}, max_rows=330)
        name = f"{question.model}_ablation.csv"
        tables.download("Download changes (CSV)", table, name, key="ablate_csv")


def show_caveats(
    question: AblationTarget, changed: Effect, heads: Sequence[str], kind: str
) -> None:
    """Show two measured caveats: effects don't add up, and the method matters."""
    if not heads:
        st.text("All heads are on. Choose one above, or click one in the grid below.")
        return
    unit = "nats" if question.position is not None else "in mean 1 − cosine"
    other_kind = runs.KINDS[1 - runs.KINDS.index(kind)]
    lines = [
        f"With {kind}, the effect is {changed.size:.3f} {unit}. "
        f"With {other_kind}, it would be {changed.other_kind:.3f}."
    ]
    if changed.alone:
        alone = zip(changed.alone, sorted(heads), strict=True)
        sizes = " + ".join(f"{size:.3f} ({head})" for size, head in alone)
        lines.append(
            f"Their separate effects add up to {sizes} = {sum(changed.alone):.3f} {unit}. "
            f"The combined effect is {changed.size:.3f}."
        )
    elif len(heads) > 1:
        lines.append("The text is too long to also switch off each head separately.")
    else:
        lines.append("Choose a second head to see whether the effects add up.")
    st.text("\n".join(lines))
