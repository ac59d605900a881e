"""The tabs below the picture of the page "Watch heads form"."""

from __future__ import annotations

import streamlit as st

from pages.learn.watch_heads_form import maps, stored
from pages.learn.watch_heads_form.recording import BLIND_GUESS, TrainingHistory
from ui.export import source, tables
from ui.widgets import code_block
from ui.widgets.plain_table import plain_table

SCORES_PART, STORED_PART, NUMBERS = (
    "How two heads do it",
    "What each switch breaks",
    "All numbers, and the code",
)
PARTS = (SCORES_PART, STORED_PART, NUMBERS)
_FOLDER = "pages/learn/watch_heads_form/experiment"
_SCORES = "attention_core/analysis/head_statistics.py"


def explain_scores() -> None:
    """Explain the two scores on the probe sequence."""
    labels, start, n = maps.probe_tokens()
    query, answer = start + n, start + 1
    token, behind = labels[query], labels[answer]
    code_block.plain(" ".join(labels))
    st.markdown(
        f"The segment at position {start} repeats at position {query}, so `{token}` appears a "
        f"second time. The first `{token}` was followed by `{behind}`, so `{behind}` is a good "
        "guess for what comes next.\n"
        f"- **Layer 0**: each token attends to the token before it and copies it. Position "
        f"{answer} now contains its own token, `{behind}`, and the one before it, `{token}`. The "
        "*previous-token score* is the mean weight on the token before.\n"
        f"- **Layer 1**: the second `{token}` searches for a token that follows `{token}`, finds "
        f"position {answer}, and copies `{behind}`. The *induction score* is the mean weight from "
        "a repeated token to the token after its first copy.\n"
        "- **One layer isn't enough**, because in the first layer a key contains only its own "
        "token."
    )


def stored_runs() -> None:
    """Show the stored runs, one row per switch."""
    stored_runs = stored.stored()
    forms = dict.fromkeys(stored.NUMBERS, "{:.2f}")
    plain_table(stored_runs.table, "Stored runs", forms)
    st.markdown(
        f":small[A blind guess has a loss of {BLIND_GUESS:.2f}. Scores are from the best head, at "
        "unseen distances.]\n"
        "- **The same distance**: a head learns to look back a fixed number of tokens. At other "
        "distances, it confidently predicts the wrong token.\n"
        "- **Mask off**: the model reads the answer from the next token, which doesn't exist when "
        "it writes.\n"
        "- **Scale off**: scores are too large from the start.\n"
        "- **Dropout** makes it harder to rely on a single weight, so the heads form later."
    )


def numbers(recording: TrainingHistory) -> None:
    """Show all measurements of the run in the picture, their download, and the code."""
    table = recording.table
    plain_table(table.iloc[:, :5], "All measurements of this run", max_rows=260)
    tables.download(
        "Download CSV with all heads", table, "heads_form.csv", key="watch_heads_form_csv"
    )
    source.show_lines(f"{_FOLDER}/training.py", "HeadTraining.step", "logits", "loss", "gradients")
    source.show_lines(_SCORES, "_offset_score", "queries", "mean weight")
    source.show(f"{_FOLDER}/sequences.py", "draw")
