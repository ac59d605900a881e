"""The parts below the picture of the page "Watch heads form"."""

from __future__ import annotations

import streamlit as st

from pages.learn.watch_heads_form import maps, stored
from pages.learn.watch_heads_form.recording import BLIND_GUESS, TrainingHistory
from ui.export import source, tables
from ui.widgets import code_block
from ui.widgets.plain_table import plain_table

HOW, WRONG, NUMBERS = "How two heads do it", "What each switch breaks", "All numbers, and the code"
PARTS = (HOW, WRONG, NUMBERS)
_FOLDER = "pages/learn/watch_heads_form/experiment"
_SCORES = "attention_core/analysis/head_statistics.py"


def how() -> None:
    """The two scores in words, on the probe sequence."""
    labels, start, n = maps.probe_tokens()
    query, answer = start + n, start + 1
    token, behind = labels[query], labels[answer]
    code_block.plain(" ".join(labels))
    st.markdown(
        f"The tokens from position {start} on come again at {query}, which holds `{token}` for "
        f"the second time. The first `{token}` was followed by `{behind}`: a good guess.\n"
        f"- **Layer 0**: each token looks at the one before it and notes it. So position {answer} "
        f"knows: I am `{behind}`, and `{token}` stands before me. *Previous-token score*: mean "
        "weight on the token before.\n"
        f"- **Layer 1**: the second `{token}` searches for a token that noted `{token}`, finds "
        f"position {answer}, and copies `{behind}`. *Induction score*: mean weight from a repeated "
        "token to the token after its first copy.\n"
        "- **One layer is too few**: in the first layer a key knows only its own token."
    )


def wrong() -> None:
    """The stored runs, a row for each switch."""
    kept = stored.stored()
    forms = dict.fromkeys(stored.NUMBERS, "{:.2f}")
    plain_table(kept.table, "Stored runs", forms)
    st.markdown(
        f":small[Stored runs. A blind guess costs {BLIND_GUESS:.2f}. Scores are those of the best "
        "head, at distances never trained on.]\n"
        "- **The same distance**: a head looks as far back as always, whatever stands there. "
        "Elsewhere it is sure of a wrong token.\n"
        "- **Mask off**: the answer is read from the next token. A model that writes has none.\n"
        "- **Scale off**: scores are too large from the start.\n"
        "- **Dropout** makes it harder to lean on a single weight."
    )


def numbers(recording: TrainingHistory) -> None:
    """Every measurement of the run in the picture, a file of it, and the code."""
    table = recording.table
    plain_table(table.iloc[:, :5], "Every measurement of this run", most=260)
    tables.download(
        "Download with every head (CSV)", table, "heads_form.csv", key="watch_heads_form_csv"
    )
    source.step(f"{_FOLDER}/training.py", "HeadTraining.step", "logits", "loss", "gradients")
    source.step(_SCORES, "_earlier", "queries", "mean weight")
    source.show(f"{_FOLDER}/sequences.py", "draw")
