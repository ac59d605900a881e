"""The page's numbers as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.who_sets_the_weights.run import PURPOSE, FineTunedRun
from serving import models, runs
from serving.heads import HeadId
from serving.limits import MAX_TRAINED_TOKENS
from ui.text.formatting import format_number, percent, plural
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from torch import Tensor

    from pages.learn.who_sets_the_weights.experiment import Part

BEFORE, AFTER = "before", "after"
CHANGE = "change ÷ length"


def losses(tuning_run: FineTunedRun) -> pd.DataFrame:
    """The loss before the first step and after each step: columns `step`, `loss`."""
    return pd.DataFrame({"step": range(len(tuning_run.losses)), "loss": tuning_run.losses})


def parts(tuning_run: FineTunedRun) -> pd.DataFrame:
    """One row per part of the model, with its length, its first gradient, and its change.

    Columns: `layer` (-1: in no layer), `kind`, `numbers`, `length`, `gradient`, `change`, `CHANGE`.
    """
    rows = [
        (
            -1 if layer is None else layer,
            kind,
            moved.n_numbers,
            moved.length,
            tuning_run.first.gradients[layer, kind],
            moved.change,
            moved.share,
        )
        for (layer, kind), moved in sorted(tuning_run.changes.items(), key=_order)
    ]
    names = ["layer", "kind", "numbers", "length", "gradient", "change", CHANGE]
    return pd.DataFrame(rows, columns=names)


def _order(item: tuple[Part, object]) -> tuple[int, int]:
    from pages.learn.who_sets_the_weights.experiment import KINDS

    layer, kind = item[0]
    return -1 if layer is None else layer, KINDS.index(kind)


def most_and_least(table: pd.DataFrame) -> tuple[str, str]:
    """Name the parts in layers that moved most and least, relative to their length.

    Parts that were all zeros are left out, because they have no length to compare to.
    """
    in_layers = table[(table["layer"] >= 0) & np.isfinite(table[CHANGE])]
    shares = in_layers[CHANGE]
    return _part_name(in_layers.loc[shares.idxmax()]), _part_name(in_layers.loc[shares.idxmin()])


def _part_name(row: pd.Series) -> str:
    kind = row["kind"] if row["kind"].startswith("W_") else f"the {row['kind']}"
    return f"{kind} of layer {row['layer']} ({percent(row[CHANGE])})"


def positions(tuning_run: FineTunedRun) -> pd.DataFrame:
    """One row per position that has a next token.

    Columns: `position`, `token`, `next token`, `BEFORE` and `AFTER` (losses), and the probabilities
    of the correct token, `p before` and `p after`.
    """
    before, after = tuning_run.first.before.losses.numpy(), tuning_run.after.losses.numpy()
    return pd.DataFrame(
        {
            "position": range(len(before)),
            "token": tuning_run.labels[:-1],
            "next token": tuning_run.labels[1:],
            BEFORE: before,
            AFTER: after,
            "p before": np.exp(-before),
            "p after": np.exp(-after),
        }
    )


@dataclass(frozen=True)
class WeightsBeforeAfter:
    """A head's weights before and after training, (T, T), and a sentence about them."""

    before: np.ndarray
    after: np.ndarray
    sentence: str


def head_maps(tuning_run: FineTunedRun, layer: int, head: int) -> WeightsBeforeAfter:
    """Compare a head's weights before and after training."""
    before = tuning_run.first.before.weights[layer, head].numpy()
    after = tuning_run.after.weights[layer, head].numpy()
    query, key = np.unravel_index(int(np.abs(after - before).argmax()), before.shape)
    labels = tuning_run.labels
    return WeightsBeforeAfter(
        before,
        after,
        f"In {HeadId(layer, head)}, the weight from “{isolated(labels[query])}” to "
        f"“{isolated(labels[key])}” changed most, from {percent(before[query, key])} to "
        f"{percent(after[query, key])}. Nobody told this head to change.",
    )


@dataclass(frozen=True)
class Chain:
    """How the loss reaches W_q of one head, before the first step.

    table: one row per tensor on the path. scores: the gradients of the head's scaled scores,
    (T, T). by_head: the length of W_q's gradient for each head of the layer, (H,). product: the
    length of the last two factors, multiplied here. sentence: about the scores.
    """

    table: pd.DataFrame
    scores: np.ndarray
    by_head: np.ndarray
    product: float
    sentence: str


def chain(tuning_run: FineTunedRun, layer: int, head: int) -> Chain:
    """Trace the gradient from the loss to a head's W_q; raises the errors of loading."""
    import torch

    from pages.learn.who_sets_the_weights.experiment import query_gradient, w_q_gradient

    settings, signal = tuning_run.settings, tuning_run.first.signal
    one_pass = runs.run(settings.model, settings.text, MAX_TRAINED_TOKENS, PURPOSE)
    record = one_pass.layer(layer)
    core = models.get(settings.model).core
    with torch.inference_mode():
        places = torch.arange(len(one_pass.tokens), device=record.input.device)
        rotation = core.new_pass(record.input, places).rotation
        keys = record.attention.k[0, one_pass.kv_head(head)]
        of_scores = signal.score_gradients[layer, head].to(keys)
        of_queries = query_gradient(of_scores, keys, record.attention.scale)
        product = w_q_gradient(record.attention_reads[0], of_queries, rotation)
    (n_tokens, size), width = of_queries.shape, core.config.d_model
    vocabulary, later = core.config.vocab_size, core.config.n_layers - 1 - layer
    name, at = str(HeadId(layer, head)), (layer, head)
    square, of_head = (n_tokens, n_tokens), (n_tokens, size)
    rows: list[tuple[str, tuple[int, ...], str, tuple[int, ...], float | Tensor]] = [
        ("loss", (), "", (), 1.0),
        (
            "logits",
            (n_tokens, vocabulary),
            f"(probabilities − 1 for the correct token) ÷ {n_tokens - 1}",
            (n_tokens, vocabulary),
            signal.logits,
        ),
        (
            "final hidden states",
            (n_tokens, width),
            "output matrix",
            (vocabulary, width),
            signal.hidden,
        ),
        (
            f"output of layer {layer}",
            (n_tokens, width),
            f"derivative of the final norm and {plural(later, 'later layer')}",
            (),
            signal.layer_outputs[layer],
        ),
        (
            "output of its attention",
            (n_tokens, width),
            "derivative of the sum and the feed-forward network",
            (),
            signal.attention[layer],
        ),
        (f"context of {name}", of_head, "its rows of W_o", (size, width), signal.context[at]),
        ("its weights", square, "its values", of_head, signal.weights[at]),
        ("its scaled scores", square, "derivative of the softmax", square, signal.scores[at]),
        ("its queries", of_head, "its keys ÷ √D", of_head, signal.queries[at]),
        (
            "its columns of W_q",
            (width, size),
            "input of attention"
            + (" and the inverse rotation of queries" if rotation is not None else ""),
            (n_tokens, width),
            signal.w_q[at],
        ),
    ]
    table = pd.DataFrame(
        [
            (what, _shape(shape), f"{factor} {_shape(other)}".strip(), float(length))
            for what, shape, factor, other, length in rows
        ],
        columns=["gradient of", "shape", "row above, times", "length"],
    )
    scores = signal.score_gradients[layer, head].numpy()
    query, key = np.unravel_index(int(np.abs(scores).argmax()), scores.shape)
    strongest = float(scores[query, key])
    labels = one_pass.tokens.labels
    effect = "raise" if strongest > 0 else "lower"
    sentence = (
        f"The score of “{isolated(labels[query])}” with “{isolated(labels[key])}” has the largest "
        f"gradient, {format_number(strongest, '+.2g')}. Increasing this score would {effect} the "
        "loss."
    )
    return Chain(table, scores, signal.w_q[layer].numpy(), float(product.norm()), sentence)


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(f'{size:,}' for size in shape)})" if shape else ""


def memory_table(tuning_run: FineTunedRun) -> pd.DataFrame:
    """Compare what training and generation keep in memory besides the weights."""
    gradients = 4 * tuning_run.n_numbers
    n_tokens = len(tuning_run.labels)
    activations = tuning_run.first.n_kept_bytes
    rows = [
        ("activations for the backward pass", megabytes(activations), "none"),
        ("gradients, one per weight", megabytes(gradients), "none"),
        ("KV cache", "none", megabytes(tuning_run.n_cache_bytes)),
        ("predictions per pass", f"{n_tokens - 1}", "1, at the last position"),
        ("passes over the text", "1", "1, then 1 per new token"),
        ("source of the next token", "the text", "the model's prediction"),
        ("what changes", "the weights", "the text"),
    ]
    return pd.DataFrame(rows, columns=["", "training", "generation with a cache"])


def stale_keys(tuning_run: FineTunedRun, layer: int) -> tuple[float, float]:
    """The largest change of a number in a layer's keys, and the largest number."""
    before, after = tuning_run.first.before.keys[layer], tuning_run.after.keys[layer]
    return float((after - before).abs().max()), float(before.abs().max())


def megabytes(n_bytes: int) -> str:
    """Format bytes as megabytes."""
    return f"{n_bytes / 1e6:,.2f} MB" if n_bytes < 1e7 else f"{n_bytes / 1e6:,.0f} MB"
