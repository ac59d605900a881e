"""What switching heads off changes, on the page "Ablate": sentences, a chart, a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.compare.ablate import charts, runs
from pages.compare.ablate.runs import AblationTarget, Effect
from serving import models, token_text
from ui.charts.bars import bars, labelled
from ui.charts.show import show
from ui.export import tables
from ui.text.isolated import isolated
from ui.text.number_text import percent, written
from ui.widgets.plain_table import plain_table

TOP = 10
TURNED = "1 − cosine of the hidden state with the unchanged one"
MANY_TOKENS = 24
BEFORE, AFTER = "p before", "p after"  # columns of probabilities
_FORMATS = {BEFORE: "{:.5f}", AFTER: "{:.5f}", "Δ log p": "{:+.2f}", "id": "{}"}


def question_text(question: AblationTarget) -> str:
    """What the model was asked, in a line of plain text."""
    if question.position is None:
        return f"{question.title} has no masked-word head here: its hidden states are compared."
    label = isolated(question.tokens.labels[question.position])
    if question.asks == "next":
        return f"{question.title} predicts the token after position {question.position}, “{label}”."
    if question.ids[question.position] == question.tokens.ids[question.position]:
        return f"{question.title} predicts the word masked at position {question.position}."
    return f"{question.title} reads [MASK] at position {question.position}, in place of “{label}”."


def effect(question: AblationTarget, changed: Effect) -> None:
    """What switching the chosen heads off changes: numbers, chart, table, download."""
    if question.position is None:
        _states(question, changed)
    else:
        _predictions(question, changed)


def predictions_table(question: AblationTarget, changed: Effect) -> pd.DataFrame:
    """The likeliest tokens before and after, by their probability before."""
    before, after = changed.before, changed.after
    if before is None or after is None:
        raise ValueError("there are no predictions of a model that makes none")
    ids = np.union1d(np.argsort(-before)[:TOP], np.argsort(-after)[:TOP])
    ids = ids[np.argsort(-before[ids], kind="stable")]
    return pd.DataFrame(
        {
            "token": token_text.pieces(models.get(question.model).tokenizer, ids.tolist()),
            BEFORE: np.exp(before[ids], dtype=np.float64),
            AFTER: np.exp(after[ids], dtype=np.float64),
            "Δ log p": after[ids] - before[ids],
            "place before": [int((before > before[i]).sum()) + 1 for i in ids],
            "place after": [int((after > after[i]).sum()) + 1 for i in ids],
            "id": ids,
        }
    )


def _predictions(question: AblationTarget, changed: Effect) -> None:
    table = predictions_table(question, changed)
    first, last = table.loc[table[BEFORE].idxmax()], table.loc[table[AFTER].idxmax()]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show(charts.predictions, charts.before_and_after(table), key="ablate_predictions")
    with right:
        cells = st.columns(2)
        cells[0].metric("Divergence (nats)", f"{changed.size:.3f}")
        change = round(changed.second, 2) + 0.0  # and no −0.00
        cells[1].metric("Change of top logit", written(change, "+.2f"))
        # metrics read their text as Markdown: tokens go into plain text
        st.text(
            f"Likeliest with all heads on: “{isolated(first['token'])}”, "
            f"{percent(first[BEFORE])}; now {percent(first[AFTER])}.\n"
            f"Likeliest now: “{isolated(last['token'])}”, {percent(last[AFTER])}; "
            f"{percent(last[BEFORE])} before."
        )
        plain_table(table, "The likeliest tokens", _FORMATS, most=178)
        name = f"{question.model}_ablation.csv"
        tables.download("Download these predictions (CSV)", table, name, key="ablate_csv")


def states_table(question: AblationTarget, changed: Effect) -> pd.DataFrame:
    """What becomes of the state of each token."""
    return pd.DataFrame(
        {
            "position": range(len(question.tokens)),
            "token": question.tokens.labels,
            "1 − cosine": changed.cosine,
            "relative distance": changed.relative,
        }
    )


def turned(table: pd.DataFrame) -> pd.DataFrame:
    """How far the state of each token of `states_table` has turned, for bars."""
    return labelled(table["token"], table["1 − cosine"])


def turned_orientation(table: pd.DataFrame) -> dict[str, Any]:
    """How the bars of `turned` lie: in long texts they stand, to find room."""
    return {"horizontal": len(table) <= MANY_TOKENS, "height": 440}


def _states(question: AblationTarget, changed: Effect) -> None:
    table = states_table(question, changed)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show(bars, turned(table), TURNED, **turned_orientation(table), key="ablate_states")
    with right:
        cells = st.columns(2)
        cells[0].metric("Mean 1 − cosine", f"{changed.size:.4f}")
        cells[1].metric("Mean relative distance", f"{changed.second:.4f}")
        plain_table(table, "What becomes of each token", {"1 − cosine": "{:.5f}"}, most=330)
        name = f"{question.model}_ablation.csv"
        tables.download("Download these changes (CSV)", table, name, key="ablate_csv")


def honest(question: AblationTarget, changed: Effect, heads: Sequence[str], kind: str) -> None:
    """Two measured warnings: effects do not add up, and the way of switching off matters."""
    if not heads:
        st.text("No head is off: choose one above, or click one in the grid below.")
        return
    unit = "nats" if question.position is not None else "in mean 1 − cosine"
    other_kind = runs.KINDS[1 - runs.KINDS.index(kind)]
    lines = [
        f"Made {other_kind} instead: {changed.other_kind:.3f} {unit}, "
        f"with {kind} {changed.size:.3f}."
    ]
    if changed.alone:
        alone = zip(changed.alone, sorted(heads), strict=True)
        sizes = " + ".join(f"{size:.3f} ({head})" for size, head in alone)
        lines.append(
            f"Alone, these heads change {sizes} = {sum(changed.alone):.3f} {unit}; together "
            f"{changed.size:.3f}. Effects need not add up."
        )
    elif len(heads) > 1:
        lines.append("The text is too long to switch each of these heads off alone as well.")
    else:
        lines.append("Choose a second head to see whether the two effects add up.")
    st.text("\n".join(lines))
