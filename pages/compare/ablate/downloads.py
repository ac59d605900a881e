"""Downloads of the page "Ablate": the numbers in its charts, and its code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pages.compare.ablate import ranking, runs
from pages.compare.ablate.ranking import Ranking
from pages.compare.ablate.runs import AblationTarget, Effect
from ui.export import downloads


def show(question: AblationTarget, changed: Effect, heads: Sequence[str], kind: str) -> None:
    """Show the page's file, code and link."""
    ranked = ranking.cached_ranking(question, kind)
    downloads.panel(
        "ablate",
        downloads.npz(
            "All numbers",
            partial(arrays, question, changed, heads, ranked),
            f"{question.model}_ablation",
        ),
        snippet=snippet(question, heads, kind),
        note="The NPZ file contains what changed: the log-probabilities of the whole vocabulary "
        "before and after (log_p; the CSV has the probabilities, p), or how far each hidden state "
        "moved. It also contains the ranking of the heads (layers × heads) once that is complete. "
        "All numbers are float32.",
    )


def arrays(
    question: AblationTarget, changed: Effect, heads: Sequence[str], ranked: Ranking | None
) -> dict[str, Any]:
    """All measurements, with the same names as in the page's CSV files."""
    size, second = map(_key, ranking.measures(question))
    measurements = {
        "log_p_before": changed.before,
        "log_p_after": changed.after,
        "one_minus_cosine": changed.cosine,
        "relative_distance": changed.relative,
        f"{size}_of_each_head": None if ranked is None else ranked.sizes,
        f"{second}_of_each_head": None if ranked is None else ranked.seconds,
    }
    return {name: array for name, array in measurements.items() if array is not None} | {
        size: np.float32(changed.size),
        second: np.float32(changed.second),
        "heads_off": np.array([runs.parse(head) for head in heads], dtype=np.int64).reshape(-1, 2),
        "token_ids": np.array(question.ids),
        "tokens": np.array(question.tokens.labels),
    }


def _key(name: str) -> str:
    """Turn a column name into an array name: "mean 1 − cosine" -> "mean_one_minus_cosine"."""
    return re.sub(r"\W+", "_", name.replace("1 −", "one minus")).strip("_")


def snippet(question: AblationTarget, heads: Sequence[str], kind: str) -> str:
    """Python code that switches off the same heads and prints the page's two numbers."""
    measure = {
        "next": f"prediction_effects(logits_function(model.core), hidden[0], {question.position})",
        "masked": f"prediction_effects(masked_word_head(model), hidden[0], {question.position})",
        "states": "state_effects(hidden[0])",
    }[question.mode]
    names = ["HeadChange", "run_with_changes", measure.partition("(")[0]]
    lines = ["import torch", "import pretrained"]
    if question.mode == "next":
        names.append("logits_function")
    lines.append(f"from attention_core.analysis.ablation import {', '.join(names)}")
    if question.mode == "masked":
        lines.append("from pretrained.masked_word import masked_word_head")
    lines += [
        "",
        f'model = pretrained.load({question.model!a}, device="cpu")',
        f"ids = list(model.tokenizer.encode({question.tokens.text!a}).ids)",
    ]
    if question.mode == "next":
        lines.append(f"ids = ids[: {len(question.ids)}]  # up to the token that predicts the next")
    if question.mode == "masked":
        lines.append(f"ids[{question.position}] = model.tokenizer.mask_id")
    changes = ", ".join("HeadChange({}, {}, {!a})".format(*runs.parse(h), kind) for h in heads)
    measure_names = ", ".join(ranking.measures(question)).replace("−", "-")
    return "\n".join(
        [
            *lines,
            f"off = [{changes}]",
            "with torch.inference_mode():",
            "    # the unchanged model and the changed one, as one batch",
            "    hidden = run_with_changes(model.core, torch.tensor(ids), [[], off])",
            f"    effect = {measure}(hidden[1:])[0]",
            f"print(effect)  # {measure_names}",
        ]
    )
