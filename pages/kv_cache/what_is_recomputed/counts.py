"""What is counted: entries and multiplications of a step, all steps so far, rows that are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.kv_cache.what_is_recomputed.pictures import Look
from pages.kv_cache.what_is_recomputed.run import Growth
from serving import models, turns
from serving.cache import kept
from serving.limits import SMALL_CACHE_BYTES, check_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.experiments.kv_cache.what_is_recomputed import Scope

HEAD, LAYER, MODEL = "this head", "its layer", "the whole model"
SCOPES: dict[str, Scope] = {HEAD: "head", LAYER: "layer", MODEL: "model"}
# the columns of `totals` that there is room for; the chart and its sentence say the other sums
TOTALS_SHOWN = (
    "step", "rows without", "rows with", "all rows without", "all rows with",
    "multiplications without", "multiplications with",
)  # fmt: skip


def step_table(look: Look, scope: str) -> pd.DataFrame:
    """Every matrix of a step: what of it was there before, and what making it takes."""
    from attention_core.experiments.kv_cache.what_is_recomputed import parts

    step = look.step
    found = parts(look.made.config, step.n_tokens, step.n_before, SCOPES[scope])
    table = pd.DataFrame(
        {
            "matrix": [part.name for part in found],
            "entries": [part.n_entries for part in found],
            "there a step ago": [part.n_repeated for part in found],
            "new, masked at once": [part.n_hidden for part in found],
            "new and used": [part.n_new for part in found],
            "multiplications": [part.products for part in found],
            "with the cache": [part.cached_products for part in found],
        }
    )
    total = pd.DataFrame([{"matrix": "sum", **table.drop(columns="matrix").sum()}])
    return pd.concat([table, total], ignore_index=True)


def step_summary(look: Look, table: pd.DataFrame, scope: str) -> str:
    """The counts of a step in a sentence. Markdown: numbers only."""
    total = table.iloc[-1]
    if not look.step.n_before:
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


def totals(made: Growth) -> pd.DataFrame:
    """Rows and multiplications of every step of the generation, and their running sums."""
    from attention_core.experiments.kv_cache.what_is_recomputed import parts

    rows = []
    for number, step in enumerate(made.steps, start=1):
        found = parts(made.config, step.n_tokens, step.n_before, "model")
        rows.append(
            {
                "step": number,
                "rows without": step.n_tokens,
                "rows with": step.n_tokens - step.n_before,
                "multiplications without": sum(part.products for part in found),
                "multiplications with": sum(part.cached_products for part in found),
            }
        )
    table = pd.DataFrame(rows)
    for column in list(table)[1:]:
        table[f"all {column}"] = table[column].cumsum()
    return table


def totals_summary(look: Look, table: pd.DataFrame) -> str:
    """The sums up to the step that is shown. Markdown: numbers only."""
    now, first = table.iloc[look.now], look.made.n_prompt
    ends = [str(count) for count in table["rows without"][: look.now + 1]]
    added = " + ".join(ends if len(ends) < 4 else [*ends[:2], "…", ends[-1]])
    ratio = now["all multiplications without"] / now["all multiplications with"]
    new = f" + {look.now} × 1" if look.now else ""
    return (
        f"So far: {added} = **{now['all rows without']:.0f} rows** through every layer without a "
        f"cache, {first}{new} = **{now['all rows with']:.0f}** with it. In multiplications: "
        f"{now['all multiplications without']:,.0f} and {now['all multiplications with']:,.0f}, "
        f"**{ratio:.1f} times** as many."
    )


# ---- why not queries


def read_counts(look: Look) -> pd.DataFrame:
    """How many later steps, up to the one shown, read each token's query, key and value.

    In each step every row is spoiled in turn; what changes the last context row was read.
    """
    from attention_core.experiments.kv_cache.what_is_recomputed import (
        KEYS,
        QUERIES,
        VALUES,
        rows_read,
    )

    made = look.made
    columns = {QUERIES: "query read later", KEYS: "key read later", VALUES: "value read later"}
    first = [0] * made.n_prompt + list(range(1, look.now + 1))  # the step that first ran a token
    counted = {name: np.zeros(len(first), int) for name in columns}
    for number in range(1, look.now + 1):
        matrices = made.steps[number].full.head(look.layer, look.head)
        q, k, v = (matrices[name] for name in columns)
        later = np.array([begun < number for begun in first[: len(q)]])
        found = rows_read(q, k, v, scale=look.scale, window=made.config.window)
        for name, read in found.items():
            counted[name][: len(later)] += read.numpy() & later
    return pd.DataFrame(
        {
            "token": made.labels[: len(first)],
            "first run in step": [begun + 1 for begun in first],
            **{columns[name]: counts for name, counts in counted.items()},
        }
    )


def spoiled(look: Look) -> pd.DataFrame:
    """The last context row once the old rows of q, k or v hold something else."""
    from attention_core.experiments.kv_cache.what_is_recomputed import (
        KEYS,
        QUERIES,
        VALUES,
        last_context,
        spoil,
    )

    matrices = look.step.full.head(look.layer, look.head)
    parts = {name: matrices[name] for name in (QUERIES, KEYS, VALUES)}
    n_old = look.step.n_tokens - 1

    def last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return last_context(q, k, v, scale=look.scale, window=look.made.config.window)

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
    n_old: how many old tokens the encoder's text had. title: of the encoder; empty if there is
    none, and then `encoder` is empty too.
    """

    decoder: np.ndarray
    encoder: np.ndarray
    title: str
    n_old: int


def contrast(made: Growth) -> Contrast:
    """The whole text with its last token and without it, in the decoder and in an encoder.

    Raises: what loading the encoder raises.
    """
    return _contrast(made, models.preferred("encoder"))


def _contrast_key(made: Growth, name: str | None) -> tuple[object, ...]:
    return (*models.key(made.settings.model), made.ids, name and models.key(name))


@kept(SMALL_CACHE_BYTES, key=_contrast_key)
def _contrast(made: Growth, name: str | None) -> Contrast:
    from attention_core.experiments.kv_cache.what_is_recomputed import (
        KEYS,
        VALUES,
        old_rows_by_layer,
        repeated,
    )

    before, now = made.steps[-2].full, made.steps[-1].full
    moves, sizes = [], []
    for which in (KEYS, VALUES):
        moves.append(repeated(before.named[which], now.named[which], which).amax(1).numpy())
        sizes.append(before.named[which].abs().amax(dim=(1, 2, 3)).numpy())
    decoder = np.maximum(*moves) / np.maximum(*sizes)
    if name is None:
        return Contrast(decoder, np.zeros(0, np.float32), "", 0)
    model = models.get(name)
    text = models.get(made.settings.model).tokenizer.decode(made.ids[: made.n_rows])
    tokens = model.tokenizer.encode(text)
    check_tokens(len(tokens.ids), model.core.config.context_length, "the encoder's context")
    words = [place for place, special in enumerate(tokens.special) if not special]
    n = words[-1] + 1 if words else 0  # without the marks at the end, which a longer text has too
    if n < 2:
        return Contrast(decoder, np.zeros(0, np.float32), model.spec.title, 0)
    shorter = [*tokens.ids[: n - 1], *tokens.ids[n:]]
    with turns.turn():
        moved, largest = old_rows_by_layer(model.core, shorter, tokens.ids, n - 1)
    return Contrast(decoder, (moved / largest).numpy(), model.spec.title, n - 1)


def contrast_table(made: Growth, found: Contrast) -> pd.DataFrame:
    """A row a layer and model."""
    parts = [(made.title, found.decoder)]
    if found.title:
        parts.append((found.title, found.encoder))
    return pd.concat(
        [
            pd.DataFrame({"model": title, "layer": range(len(ratios)), "moved by": ratios})
            for title, ratios in parts
        ],
        ignore_index=True,
    )


def contrast_summary(made: Growth, found: Contrast) -> str:
    """The largest of each, in sentences, as text: models may have any name."""
    most = float(found.decoder.max())
    decoder = (
        f"One more token leaves the old keys and values of {made.title} as they were in every "
        "layer: "
        + ("the same bits." if most == 0 else f"up to {most:.1e} of the largest, by rounding.")
    )
    if not found.title:
        return f"{decoder} No encoder is on this machine to compare."
    if not found.n_old:
        return f"{decoder} In {found.title} this text has no old token."
    deeper = ""
    if len(found.encoder) > 1:
        low, high = found.encoder[1:].min(), found.encoder[1:].max()
        deeper = f", but by {low:.1%} to {high:.1%} of the largest in the layers after it"
    first = "not at all" if found.encoder[0] == 0 else f"by {found.encoder[0]:.0e}"
    return (
        f"{decoder} In {found.title}, where every token sees every other, they move: {first} in "
        f"layer 0, which reads single words{deeper}. What was cached there would be wrong. "
        "(A move of 0 is drawn at the lower end.)"
    )
