"""Counts of entries and multiplications per step, and of the rows read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.kv_cache.what_is_recomputed.pictures import StepView
from pages.kv_cache.what_is_recomputed.run import Growth
from serving import compute, models, token_text
from serving.cache import cached
from serving.limits import check_tokens
from ui.text.formatting import format_number

if TYPE_CHECKING:
    from torch import Tensor

    from pages.kv_cache.what_is_recomputed.experiment import Scope

HEAD, LAYER, MODEL = "this head", "its layer", "the whole model"
SCOPES: dict[str, Scope] = {HEAD: "head", LAYER: "layer", MODEL: "model"}
# The columns of `totals` that fit on the page; the chart and its sentence show the others.
TOTALS_SHOWN = (
    "step", "rows, no cache", "rows, cache", "total rows, no cache", "total rows, cache",
    "multiplications, no cache", "multiplications, cache",
)  # fmt: skip


def step_table(view: StepView, scope: str) -> pd.DataFrame:
    """One row per matrix of a step: repeated and new entries, and multiplications."""
    from pages.kv_cache.what_is_recomputed.experiment import parts

    step = view.step
    matrices = parts(view.growth.config, step.n_tokens, step.n_before, SCOPES[scope])
    numbers = {
        "entries": [part.n_entries for part in matrices],
        "repeated": [part.n_repeated for part in matrices],
        "new but masked": [part.n_hidden for part in matrices],
        "new and used": [part.n_new for part in matrices],
        "multiplications": [part.products for part in matrices],
        "with the cache": [part.cached_products for part in matrices],
    }
    sums = {name: [*column, sum(column)] for name, column in numbers.items()}
    return pd.DataFrame({"matrix": [*(part.name for part in matrices), "sum"], **sums})


def step_summary(view: StepView, table: pd.DataFrame, scope: str) -> str:
    """Sentences with the counts of a step, as Markdown without visitor input."""
    total = table.iloc[-1]
    if not view.step.n_before:
        return (
            f"For {scope}, all **{total['entries']:,} entries** are new. A cache saves nothing in "
            "the first step, which only fills it."
        )
    share = total["repeated"] / total["entries"]
    ratio = total["multiplications"] / total["with the cache"]
    return (
        f"For {scope}, **{total['repeated']:,} of {total['entries']:,} entries** "
        f"({share:.0%}) were already computed one step ago. Computing all of them takes "
        f"{total['multiplications']:,} multiplications. Computing only the new rows takes "
        f"{total['with the cache']:,}, which is **{ratio:.1f} times** fewer."
    )


def totals(growth: Growth) -> pd.DataFrame:
    """Rows and multiplications of every step, and their running totals."""
    from pages.kv_cache.what_is_recomputed.experiment import parts

    rows = []
    for number, step in enumerate(growth.steps, start=1):
        matrices = parts(growth.config, step.n_tokens, step.n_before, "model")
        rows.append(
            {
                "step": number,
                "rows, no cache": step.n_tokens,
                "rows, cache": step.n_tokens - step.n_before,
                "multiplications, no cache": sum(part.products for part in matrices),
                "multiplications, cache": sum(part.cached_products for part in matrices),
            }
        )
    table = pd.DataFrame(rows)
    for column in list(table)[1:]:
        table[f"total {column}"] = table[column].cumsum()
    return table


def totals_summary(view: StepView, table: pd.DataFrame) -> str:
    """The totals up to the current step, as Markdown without visitor input."""
    so_far, first = table.iloc[view.step_index], view.growth.n_prompt
    ends = [str(count) for count in table["rows, no cache"][: view.step_index + 1]]
    added = " + ".join(ends if len(ends) < 4 else [*ends[:2], "…", ends[-1]])
    ratio = so_far["total multiplications, no cache"] / so_far["total multiplications, cache"]
    new = f" + {view.step_index} × 1" if view.step_index else ""
    return (
        f"So far, {added} = **{so_far['total rows, no cache']:.0f} rows** went through every layer "
        f"without a cache, and {first}{new} = **{so_far['total rows, cache']:.0f}** with it. "
        f"Without the cache, that took {so_far['total multiplications, no cache']:,.0f} "
        f"multiplications, **{ratio:.1f} times** as many as the "
        f"{so_far['total multiplications, cache']:,.0f} with it."
    )


# ---- why not queries


def read_counts(view: StepView) -> pd.DataFrame:
    """How many later steps so far read each token's query, key and value.

    A row counts as read by a step if overwriting it with NaN makes that step's last context row
    NaN.
    """
    from pages.kv_cache.what_is_recomputed.experiment import (
        KEYS,
        QUERIES,
        VALUES,
        rows_read,
    )

    growth = view.growth
    columns = {QUERIES: "query read later", KEYS: "key read later", VALUES: "value read later"}
    # the step that first ran each token
    first = [0] * growth.n_prompt + list(range(1, view.step_index + 1))
    counts = {name: np.zeros(len(first), int) for name in columns}
    for number in range(1, view.step_index + 1):
        matrices = growth.steps[number].full.head(view.layer, view.head)
        q, k, v = (matrices[name] for name in columns)
        later = np.array([begun < number for begun in first[: len(q)]])
        later_reads = rows_read(q, k, v, scale=view.scale, window=growth.config.window)
        for name, rows in later_reads.items():
            counts[name][: len(later)] += rows.numpy() & later
    return pd.DataFrame(
        {
            "token": growth.labels[: len(first)],
            "first run in step": [begun + 1 for begun in first],
            **{columns[name]: counts for name, counts in counts.items()},
        }
    )


def spoiled_table(view: StepView) -> pd.DataFrame:
    """How the last context row changes if the old rows of q, k or v are overwritten."""
    from pages.kv_cache.what_is_recomputed.experiment import (
        KEYS,
        QUERIES,
        VALUES,
        last_context,
        overwrite_rows,
    )

    matrices = view.step.full.head(view.layer, view.head)
    parts = {name: matrices[name] for name in (QUERIES, KEYS, VALUES)}
    n_old = view.step.n_tokens - 1

    def last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return last_context(q, k, v, scale=view.scale, window=view.growth.config.window)

    rows = []
    for name in parts:
        for fill in (0.0, math.nan):
            inputs = {**parts, name: overwrite_rows(parts[name], n_old, fill)}
            change = (last(*inputs.values()) - last(*parts.values())).abs().max()
            rows.append(
                {
                    "overwritten rows": f"{n_old} old {name}",
                    "set to": "0" if fill == 0 else "not a number",
                    "last context row": _format_difference(float(change)),
                }
            )
    return pd.DataFrame(rows)


def _format_difference(difference: float) -> str:
    if math.isnan(difference):
        return "also not a number"
    return "unchanged in every bit" if difference == 0 else f"off by up to {difference:.3f}"


# ---- why not in an encoder


@dataclass(frozen=True)
class Contrast:
    """How far one more token moves the old keys and values in each layer.

    decoder, encoder: (L), largest absolute difference ÷ largest absolute value.
    n_old: number of old tokens in the encoder's text. title: the encoder's name. Without an
    encoder, `title` and `encoder` are empty.
    """

    decoder: np.ndarray
    encoder: np.ndarray
    title: str
    n_old: int


def contrast(growth: Growth) -> Contrast:
    """Compare the text with and without its last token in the decoder and an encoder.

    Raises: the errors of loading the encoder (`models.LOAD_ERRORS`).
    """
    return _contrast(growth, models.preferred("encoder"))


def _contrast_key(growth: Growth, name: str | None) -> tuple[object, ...]:
    return (*growth.model_key, growth.ids, name and models.key(name))


@cached(key=_contrast_key)
def _contrast(growth: Growth, name: str | None) -> Contrast:
    from pages.kv_cache.what_is_recomputed.experiment import (
        KEYS,
        VALUES,
        change_of_old_part,
        old_rows_by_layer,
    )

    before, after = growth.steps[-2].full, growth.steps[-1].full
    moves, sizes = [], []
    for which in (KEYS, VALUES):
        moves.append(
            change_of_old_part(before.parts[which], after.parts[which], which).amax(1).numpy()
        )
        sizes.append(before.parts[which].abs().amax(dim=(1, 2, 3)).numpy())
    decoder = _share(np.maximum(*moves), np.maximum(*sizes))
    if name is None:
        return Contrast(decoder, np.zeros(0, np.float32), "", 0)
    model = models.get(name)
    decoder_tokenizer = growth.pretrained.tokenizer
    text = token_text.decode_partial(decoder_tokenizer, growth.ids[: growth.n_rows])
    tokens = model.tokenizer.encode(text)
    check_tokens(len(tokens.ids), model.core.config.context_length, "the encoder's context")
    words = [place for place, special in enumerate(tokens.special) if not special]
    n = words[-1] + 1 if words else 0  # leaves out the special tokens at the end
    if n < 2:
        return Contrast(decoder, np.zeros(0, np.float32), model.spec.title, 0)
    shorter = [*tokens.ids[: n - 1], *tokens.ids[n:]]
    with compute.slot():
        change, largest = old_rows_by_layer(model.core, shorter, tokens.ids, n - 1)
    return Contrast(decoder, _share(change.numpy(), largest.numpy()), model.spec.title, n - 1)


def _share(change: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """`moved / largest`, or 0 if both are 0 (for example with all-zero weights)."""
    share: np.ndarray = change / np.maximum(largest, np.finfo(np.float32).tiny)
    return share


def contrast_table(growth: Growth, contrast: Contrast) -> pd.DataFrame:
    """One row per layer and model: how far the old keys and values moved."""
    parts = [(growth.title, contrast.decoder)]
    if contrast.title:
        parts.append((contrast.title, contrast.encoder))
    return pd.concat(
        [
            pd.DataFrame({"model": title, "layer": range(len(ratios)), "moved by": ratios})
            for title, ratios in parts
        ],
        ignore_index=True,
    )


def contrast_summary(growth: Growth, contrast: Contrast) -> str:
    """Sentences about the largest change in each model.

    They're shown as plain text instead of Markdown, because a model may have any name.
    """
    most = float(contrast.decoder.max())
    decoder = (
        f"In {growth.title}, one more token doesn't change the old keys and values in any layer "
        + (
            "(every bit is the same)."
            if most == 0
            else f"(except for rounding: up to {format_number(most, '.1e')} of the largest value)."
        )
    )
    if not contrast.title:
        return f"{decoder} There's no encoder on this machine to compare it with."
    if not contrast.n_old:
        return f"{decoder} In {contrast.title}, this text has no old token."
    deeper = ""
    if len(contrast.encoder) > 1:
        low, high = contrast.encoder[1:].min(), contrast.encoder[1:].max()
        deeper = f", and by {low:.1%} to {high:.1%} of the largest value in the layers after it"
    first = (
        "not at all"
        if contrast.encoder[0] == 0
        else f"by {format_number(contrast.encoder[0], '.0e')}"
    )
    return (
        f"{decoder} In {contrast.title}, every token sees every other, so the old keys and values "
        f"change: {first} in layer 0, which reads each token separately{deeper}. Cached values "
        "would be wrong there. (A change of 0 is drawn at the bottom of the chart.)"
    )
