"""The numbers of the page as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.who_sets_the_weights.run import PURPOSE, FineTunedRun
from serving import models, runs
from serving.heads import HeadId
from serving.limits import MAX_TRAINED_TOKENS
from ui.text.isolated import isolated
from ui.text.number_text import percent, written

if TYPE_CHECKING:
    from torch import Tensor

    from pages.learn.who_sets_the_weights.experiment import Part

BEFORE, AFTER = "before", "after"
MOVED = "change ÷ length"


def losses(trained: FineTunedRun) -> pd.DataFrame:
    """The loss before the first step and after each: columns `step`, `loss`."""
    return pd.DataFrame({"step": range(len(trained.losses)), "loss": trained.losses})


def parts(trained: FineTunedRun) -> pd.DataFrame:
    """A row for each part of the model: how long it is, its first gradient, how far it moved.

    Columns: `layer` (-1: in no layer), `kind`, `numbers`, `length`, `gradient`, `change`, `MOVED`.
    """
    rows = [
        (
            -1 if layer is None else layer,
            kind,
            moved.n_numbers,
            moved.length,
            trained.first.gradients[layer, kind],
            moved.change,
            moved.share,
        )
        for (layer, kind), moved in sorted(trained.moved.items(), key=_order)
    ]
    names = ["layer", "kind", "numbers", "length", "gradient", "change", MOVED]
    return pd.DataFrame(rows, columns=names)


def _order(item: tuple[Part, object]) -> tuple[int, int]:
    from pages.learn.who_sets_the_weights.experiment import KINDS

    layer, kind = item[0]
    return -1 if layer is None else layer, KINDS.index(kind)


def most_and_least(table: pd.DataFrame) -> tuple[str, str]:
    """The parts in layers that moved most and least for their length, as a sentence names them.

    Parts that were 0 before have no length to compare with, and are left out.
    """
    in_layers = table[(table["layer"] >= 0) & np.isfinite(table[MOVED])]
    shares = in_layers[MOVED]
    return _named(in_layers.loc[shares.idxmax()]), _named(in_layers.loc[shares.idxmin()])


def _named(row: pd.Series) -> str:
    kind = row["kind"] if row["kind"].startswith("W_") else f"the {row['kind']}"
    return f"{kind} of layer {row['layer']} ({percent(row[MOVED])})"


def positions(trained: FineTunedRun) -> pd.DataFrame:
    """A row for each position that has a next token.

    Columns: `position`, `reads up to`, `must say`, `BEFORE` and `AFTER` (losses), and the
    probabilities of the right token, `p before` and `p after`.
    """
    before, after = trained.first.before.losses.numpy(), trained.after.losses.numpy()
    return pd.DataFrame(
        {
            "position": range(len(before)),
            "reads up to": trained.labels[:-1],
            "must say": trained.labels[1:],
            BEFORE: before,
            AFTER: after,
            "p before": np.exp(-before),
            "p after": np.exp(-after),
        }
    )


@dataclass(frozen=True)
class WeightsBeforeAfter:
    """The weights of a head before and after all steps, (T, T), and a sentence about them."""

    before: np.ndarray
    after: np.ndarray
    sentence: str


def head_maps(trained: FineTunedRun, layer: int, head: int) -> WeightsBeforeAfter:
    """What the steps did to a head's weights on the text."""
    before = trained.first.before.weights[layer, head].numpy()
    after = trained.after.weights[layer, head].numpy()
    query, key = np.unravel_index(int(np.abs(after - before).argmax()), before.shape)
    labels = trained.labels
    return WeightsBeforeAfter(
        before,
        after,
        f"The largest change in {HeadId(layer, head)}: from “{isolated(labels[query])}” to "
        f"“{isolated(labels[key])}”, {percent(before[query, key])} before and "
        f"{percent(after[query, key])} after. Nobody named this head.",
    )


@dataclass(frozen=True)
class Chain:
    """How the loss reaches W_q of one head, before the first step.

    table: a row for each tensor on the way. scores: the gradients of the head's scaled scores,
    (T, T). by_head: the length of W_q's gradient for each head of the layer, (H,). product: the
    length of the last two factors, multiplied here. sentence: about the scores.
    """

    table: pd.DataFrame
    scores: np.ndarray
    by_head: np.ndarray
    product: float
    sentence: str


def chain(trained: FineTunedRun, layer: int, head: int) -> Chain:
    """The gradient of every tensor between the loss and a head's W_q; errors as of loading."""
    import torch

    from pages.learn.who_sets_the_weights.experiment import query_gradient, w_q_gradient

    settings, signal = trained.settings, trained.first.signal
    passed = runs.run(settings.model, settings.text, MAX_TRAINED_TOKENS, PURPOSE)
    record = passed.layer(layer)
    core = models.get(settings.model).core
    with torch.inference_mode():
        places = torch.arange(len(passed.tokens), device=record.input.device)
        rotation = core.new_pass(record.input, places).rotation
        keys = record.attention.k[0, passed.kv_head(head)]
        of_scores = signal.score_gradients[layer, head].to(keys)
        of_queries = query_gradient(of_scores, keys, record.attention.scale)
        product = w_q_gradient(record.attention_reads[0], of_queries, rotation)
    (n_tokens, size), width = of_queries.shape, core.config.d_model
    vocabulary, later = core.config.vocab_size, core.config.n_layers - 1 - layer
    name, at = str(HeadId(layer, head)), (layer, head)
    square, of_head = (n_tokens, n_tokens), (n_tokens, size)
    rows: list[tuple[str, tuple[int, ...], str, tuple[int, ...], float | Tensor]] = [
        ("the loss itself", (), "", (), 1.0),
        (
            "logits",
            (n_tokens, vocabulary),
            f"(probabilities − the right token) ÷ {n_tokens - 1}",
            (n_tokens, vocabulary),
            signal.logits,
        ),
        ("last states", (n_tokens, width), "the output matrix", (vocabulary, width), signal.hidden),
        (
            f"what leaves layer {layer}",
            (n_tokens, width),
            f"the last norm and {later} later layer{'' if later == 1 else 's'}",
            (),
            signal.leaving[layer],
        ),
        (
            "what attention adds there",
            (n_tokens, width),
            "the sum, and the feed-forward network",
            (),
            signal.attention[layer],
        ),
        (f"context of {name}", of_head, "its rows of W_o", (size, width), signal.context[at]),
        ("its weights", square, "its values", of_head, signal.weights[at]),
        ("its scaled scores", square, "the slope of the softmax", square, signal.scores[at]),
        ("its queries", of_head, "its keys ÷ √D", of_head, signal.queries[at]),
        (
            "its columns of W_q",
            (width, size),
            "what the layer reads" + (", queries turned back" if rotation is not None else ""),
            (n_tokens, width),
            signal.w_q[at],
        ),
    ]
    table = pd.DataFrame(
        [
            (what, _shape(shape), f"{factor} {_shape(other)}".strip(), float(length))
            for what, shape, factor, other, length in rows
        ],
        columns=["gradient of", "shape", "is the one above, times", "length"],
    )
    scores = signal.score_gradients[layer, head].numpy()
    query, key = np.unravel_index(int(np.abs(scores).argmax()), scores.shape)
    strongest = float(scores[query, key])
    labels = passed.tokens.labels
    what_follows = (
        "A larger score would raise the loss."
        if strongest > 0
        else "A larger score would lower the loss."
    )
    sentence = (
        f"Strongest: the score of “{isolated(labels[query])}” with “{isolated(labels[key])}”, "
        f"{written(strongest, '+.2g')}. {what_follows} A step moves all matrices."
    )
    return Chain(table, scores, signal.w_q[layer].numpy(), float(product.norm()), sentence)


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(f'{size:,}' for size in shape)})" if shape else ""


def kept_bytes(trained: FineTunedRun) -> pd.DataFrame:
    """What training and writing hold in memory beside the weights, for the same text."""
    gradients = 4 * trained.n_numbers
    n_tokens = len(trained.labels)
    activations = trained.first.n_kept_bytes
    rows = [
        ("tensors kept for the way back", megabytes(activations), "none"),
        ("gradients, one a weight", megabytes(gradients), "none"),
        ("KV cache", "none", megabytes(trained.n_cache_bytes)),
        ("positions that a pass answers", f"{n_tokens - 1}", "1, the last"),
        ("passes for the text", "1", "1, then 1 for every new token"),
        ("where the next token comes from", "the text itself", "the model's own choice"),
        ("what changes", "the weights", "the text"),
    ]
    return pd.DataFrame(rows, columns=["", "training", "writing with a cache"])


def stale_keys(trained: FineTunedRun, layer: int) -> tuple[float, float]:
    """The largest change of a key's number in a layer, and the largest number."""
    before, after = trained.first.before.keys[layer], trained.after.keys[layer]
    return float((after - before).abs().max()), float(before.abs().max())


def megabytes(n_bytes: int) -> str:
    """Bytes as a visitor reads them."""
    return f"{n_bytes / 1e6:,.2f} MB" if n_bytes < 1e7 else f"{n_bytes / 1e6:,.0f} MB"
