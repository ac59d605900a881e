"""What the page counts: entries and multiplications of each step, and the rows that are read."""

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
from ui.text.number_text import written

if TYPE_CHECKING:
    from torch import Tensor

    from pages.kv_cache.what_is_recomputed.experiment import Scope

HEAD, LAYER, MODEL = "this head", "its layer", "the whole model"
SCOPES: dict[str, Scope] = {HEAD: "head", LAYER: "layer", MODEL: "model"}
# The columns of `totals` for which the page has room; the chart and its sentence give the others.
TOTALS_SHOWN = (
    "step", "rows without", "rows with", "all rows without", "all rows with",
    "multiplications without", "multiplications with",
)  # fmt: skip


def step_table(view: StepView, scope: str) -> pd.DataFrame:
    """A row for each matrix of a step: which entries existed before, and the work that it takes."""
    from pages.kv_cache.what_is_recomputed.experiment import parts

    step = view.step
    matrices = parts(view.growth.config, step.n_tokens, step.n_before, SCOPES[scope])
    numbers = {
        "entries": [part.n_entries for part in matrices],
        "there a step ago": [part.n_repeated for part in matrices],
        "new, masked at once": [part.n_hidden for part in matrices],
        "new and used": [part.n_new for part in matrices],
        "multiplications": [part.products for part in matrices],
        "with the cache": [part.cached_products for part in matrices],
    }
    sums = {name: [*column, sum(column)] for name, column in numbers.items()}
    return pd.DataFrame({"matrix": [*(part.name for part in matrices), "sum"], **sums})


def step_summary(view: StepView, table: pd.DataFrame, scope: str) -> str:
    """The counts of a step in a sentence. Markdown: numbers only."""
    total = table.iloc[-1]
    if not view.step.n_before:
        return (
            f"For {scope}: **{total['entries']:,} entries**, all new. A cache saves nothing in the "
            "first step; it is filled."
        )
    share = total["there a step ago"] / total["entries"]
    ratio = total["multiplications"] / total["with the cache"]
    return (
        f"For {scope}: **{total['there a step ago']:,} of {total['entries']:,} entries** "
        f"({share:.0%}) were there a step ago. Making them all takes "
        f"{total['multiplications']:,} multiplications; the new rows alone "
        f"{total['with the cache']:,}: **{ratio:.1f} times** fewer."
    )


def totals(growth: Growth) -> pd.DataFrame:
    """Rows and multiplications of every step of the generation, and their running sums."""
    from pages.kv_cache.what_is_recomputed.experiment import parts

    rows = []
    for number, step in enumerate(growth.steps, start=1):
        matrices = parts(growth.config, step.n_tokens, step.n_before, "model")
        rows.append(
            {
                "step": number,
                "rows without": step.n_tokens,
                "rows with": step.n_tokens - step.n_before,
                "multiplications without": sum(part.products for part in matrices),
                "multiplications with": sum(part.cached_products for part in matrices),
            }
        )
    table = pd.DataFrame(rows)
    for column in list(table)[1:]:
        table[f"all {column}"] = table[column].cumsum()
    return table


def totals_summary(view: StepView, table: pd.DataFrame) -> str:
    """The sums up to the step that is shown. Markdown: numbers only."""
    so_far, first = table.iloc[view.step_index], view.growth.n_prompt
    ends = [str(count) for count in table["rows without"][: view.step_index + 1]]
    added = " + ".join(ends if len(ends) < 4 else [*ends[:2], "…", ends[-1]])
    ratio = so_far["all multiplications without"] / so_far["all multiplications with"]
    new = f" + {view.step_index} × 1" if view.step_index else ""
    return (
        f"So far: {added} = **{so_far['all rows without']:.0f} rows** through every layer without "
        f"a cache, {first}{new} = **{so_far['all rows with']:.0f}** with it. In multiplications: "
        f"{so_far['all multiplications without']:,.0f} and "
        f"{so_far['all multiplications with']:,.0f}, **{ratio:.1f} times** as many."
    )


# ---- why not queries


def read_counts(view: StepView) -> pd.DataFrame:
    """How many later steps, up to the one shown, read each token's query, key and value.

    In each step one row after another is overwritten. A row counts as read if overwriting it
    changes the last context row.
    """
    from pages.kv_cache.what_is_recomputed.experiment import (
        KEYS,
        QUERIES,
        VALUES,
        rows_read,
    )

    growth = view.growth
    columns = {QUERIES: "query read later", KEYS: "key read later", VALUES: "value read later"}
    first = [0] * growth.n_prompt + list(
        range(1, view.step_index + 1)
    )  # the step that first ran a token
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


def spoiled(view: StepView) -> pd.DataFrame:
    """What becomes of the last context row when the old rows of q, k or v are overwritten."""
    from pages.kv_cache.what_is_recomputed.experiment import (
        KEYS,
        QUERIES,
        VALUES,
        last_context,
        spoil,
    )

    matrices = view.step.full.head(view.layer, view.head)
    parts = {name: matrices[name] for name in (QUERIES, KEYS, VALUES)}
    n_old = view.step.n_tokens - 1

    def last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return last_context(q, k, v, scale=view.scale, window=view.growth.config.window)

    rows = []
    for name in parts:
        for fill in (0.0, math.nan):
            inputs = {**parts, name: spoil(parts[name], n_old, fill)}
            moved = (last(*inputs.values()) - last(*parts.values())).abs().max()  # or not a number
            rows.append(
                {
                    "spoiled": f"old {name}, {n_old}",
                    "set to": "0" if fill == 0 else "not a number",
                    "last context row": _said(float(moved)),
                }
            )
    return pd.DataFrame(rows)


def _said(difference: float) -> str:
    if math.isnan(difference):
        return "not a number either"
    return "unchanged, to the last bit" if difference == 0 else f"off by up to {difference:.3f}"


# ---- why not in an encoder


@dataclass(frozen=True)
class Contrast:
    """How far one more token moves the keys and values of the old ones, by layer.

    decoder, encoder: (L) largest absolute differences over the largest absolute value.
    n_old: how many old tokens the encoder's text had. title: the name of the encoder. If there is
    no encoder, `title` and `encoder` are empty.
    """

    decoder: np.ndarray
    encoder: np.ndarray
    title: str
    n_old: int


def contrast(growth: Growth) -> Contrast:
    """Compare the whole text with and without its last token, in the decoder and in an encoder.

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
        old_rows_by_layer,
        repeated,
    )

    before, after = growth.steps[-2].full, growth.steps[-1].full
    moves, sizes = [], []
    for which in (KEYS, VALUES):
        moves.append(repeated(before.named[which], after.named[which], which).amax(1).numpy())
        sizes.append(before.named[which].abs().amax(dim=(1, 2, 3)).numpy())
    decoder = _share(np.maximum(*moves), np.maximum(*sizes))
    if name is None:
        return Contrast(decoder, np.zeros(0, np.float32), "", 0)
    model = models.get(name)
    decoder_tokenizer = growth.pretrained.tokenizer
    text = token_text.text_so_far(decoder_tokenizer, growth.ids[: growth.n_rows])
    tokens = model.tokenizer.encode(text)
    check_tokens(len(tokens.ids), model.core.config.context_length, "the encoder's context")
    words = [place for place, special in enumerate(tokens.special) if not special]
    n = words[-1] + 1 if words else 0  # without the marks at the end, which a longer text has too
    if n < 2:
        return Contrast(decoder, np.zeros(0, np.float32), model.spec.title, 0)
    shorter = [*tokens.ids[: n - 1], *tokens.ids[n:]]
    with compute.slot():
        moved, largest = old_rows_by_layer(model.core, shorter, tokens.ids, n - 1)
    return Contrast(decoder, _share(moved.numpy(), largest.numpy()), model.spec.title, n - 1)


def _share(moved: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """`moved / largest`; 0 where both are, as with weights that are all zero."""
    share: np.ndarray = moved / np.maximum(largest, np.finfo(np.float32).tiny)
    return share


def contrast_table(growth: Growth, contrast: Contrast) -> pd.DataFrame:
    """One row for each layer of each model: how far the old keys and values moved."""
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
    """Sentences about the largest movement in each model.

    They are shown as plain text and not as Markdown, because a model may have any name.
    """
    most = float(contrast.decoder.max())
    decoder = (
        f"One more token leaves the old keys and values of {growth.title} as they were in every "
        "layer: "
        + (
            "the same bits."
            if most == 0
            else f"up to {written(most, '.1e')} of the largest, by rounding."
        )
    )
    if not contrast.title:
        return f"{decoder} No encoder is on this machine to compare."
    if not contrast.n_old:
        return f"{decoder} In {contrast.title} this text has no old token."
    deeper = ""
    if len(contrast.encoder) > 1:
        low, high = contrast.encoder[1:].min(), contrast.encoder[1:].max()
        deeper = f", but by {low:.1%} to {high:.1%} of the largest in the layers after it"
    first = (
        "not at all" if contrast.encoder[0] == 0 else f"by {written(contrast.encoder[0], '.0e')}"
    )
    return (
        f"{decoder} In {contrast.title}, where every token sees every other, they move: {first} in "
        f"layer 0, which reads single words{deeper}. What was cached there would be wrong. "
        "(A move of 0 is drawn at the lower end.)"
    )
