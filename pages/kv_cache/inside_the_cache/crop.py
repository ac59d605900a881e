"""Crop: rows forgotten but not erased, and another text run behind the ones that stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.kv_cache.inside_the_cache.pictures import (
    OLD,
    READ,
    WRITTEN,
    buffer,
    names,
    row_label,
    scale,
)
from pages.kv_cache.inside_the_cache.run import Run, read_only
from serving import models, token_text, turns
from serving.cache import kept
from serving.limits import INSIDE_CROP_BYTES, MAX_INSIDE_CONTINUATION, OverLimit
from serving.prompts import prepare
from ui.widgets.head_picture import isolated

_EMPTY = "There is no token to continue with: type a word or more."


@dataclass(frozen=True)
class Cropped:
    """A run's cache, cropped and continued.

    keys, values: the whole buffers after the continuation, (L, H_kv, N, D). untouched: whether
    the crop left every stored number as it was. used: bytes that hold tokens before the crop,
    after it, and after the continuation. pieces: text of the new tokens.
    """

    n_before: int
    n_kept: int
    pieces: tuple[str, ...]
    keys: np.ndarray
    values: np.ndarray
    untouched: bool
    nbytes: int
    used: tuple[int, int, int]
    written: tuple[int, ...]
    difference: float
    next_piece: str
    fresh_piece: str
    flops: int
    fresh_flops: int

    @property
    def n_after(self) -> int:
        """Tokens stored in the end."""
        return self.n_kept + len(self.pieces)


def _bytes(made: Cropped) -> int:
    return made.keys.nbytes + made.values.nbytes  # its own `nbytes` are those of the model's cache


@kept(INSIDE_CROP_BYTES, key=lambda run, n_kept, text: (run.key, n_kept, text), size=_bytes)
def cropped(run: Run, n_kept: int, text: str) -> Cropped:
    """The run's cache cropped to `n_kept` tokens and continued with a text, kept for all visitors.

    Raises: OverLimit for a text that is too long, ValueError for one without a token, or one that
    the context has no room for.
    """
    import torch

    from attention_core.experiments.kv_cache.inside_the_cache.crop import crop_and_continue

    model = models.get(run.settings.model)
    tokens = prepare(
        model, text, MAX_INSIDE_CONTINUATION, "a text to continue with", empty=_EMPTY
    ).tokens
    new = list(tokens.ids)
    if tokens.special[0]:  # a mark for the beginning of a text has no place inside one
        del new[0]
    if not new:
        raise ValueError(_EMPTY)
    context = run.config.context_length
    if n_kept + len(new) > context:
        raise OverLimit(
            f"{n_kept} kept and {len(new)} new tokens are more than the {context} of this model's "
            "context. Crop to fewer tokens or shorten the text."
        )
    rows = (torch.tensor(run.keys), torch.tensor(run.values))
    with turns.turn():
        found = crop_and_continue(model.core, run.run_ids, rows, n_kept, new)
    keys, values = (read_only(one.numpy()) for one in found.after)
    next_piece, fresh_piece = token_text.pieces(model.tokenizer, [found.next_id, found.fresh_id])
    return Cropped(
        n_before=found.n_before,
        n_kept=n_kept,
        pieces=token_text.pieces(model.tokenizer, new),
        keys=keys,
        values=values,
        untouched=all(map(torch.equal, found.before, found.cropped)),
        nbytes=found.nbytes,
        used=found.used,
        written=found.access.rows_written,
        difference=found.difference,
        next_piece=next_piece,
        fresh_piece=fresh_piece,
        flops=found.flops,
        fresh_flops=found.fresh_flops,
    )


def labels(run: Run, made: Cropped, *, continued: bool) -> list[str]:
    """The labels of all rows after the crop, or after the continuation."""
    found = []
    for row in range(made.keys.shape[2]):
        piece = run.pieces[row] if row < made.n_before else ""
        if row < made.n_kept:
            mark = READ if continued else ""
        elif continued and row < made.n_after:
            mark, piece = WRITTEN + READ, made.pieces[row - made.n_kept]
        else:
            mark = OLD if row < made.n_before else ""
        found.append(row_label(mark, row, piece))
    return found


def pictures(run: Run, made: Cropped, layer: int, head: int) -> None:
    """The buffer of keys right after the crop, and after the continuation."""
    n_rows = made.keys.shape[2]
    name = names(run)[0]
    before = np.full((n_rows, run.keys.shape[3]), np.nan, dtype=np.float32)
    before[: made.n_before] = run.keys[layer, head, : made.n_before]
    after = made.keys[layer, head].copy()
    after[max(made.n_before, made.n_after) :] = np.nan
    one_scale = scale(np.concatenate([run.keys[layer, head], made.keys[layer, head]]))
    for column, rows, continued, title in zip(
        st.columns(2, gap="large"),
        (before, after),
        (False, True),
        (f"After crop({made.n_kept}), kept rows framed", "After the other text, its rows framed"),
        strict=True,
    ):
        with column:
            buffer(
                rows,
                labels(run, made, continued=continued),
                one_scale,
                name=name,
                title=f"{title}: {name}s, layer {layer}, KV head {head}",
                framed=made.written if continued else range(made.n_kept),
                key=f"inside_the_cache_crop_{'after' if continued else 'before'}",
            )


def sentence(made: Cropped) -> str:
    """What happened, in words."""
    same = "the same" if made.next_piece == made.fresh_piece else "not the same"
    off = f"{made.difference:.1e}" if made.difference else "none, they are equal bit by bit"
    return (
        f"{_counted(made.n_kept, 'row was', 'rows were')} reused: "
        f"{_counted(len(made.pieces), 'new token', 'new tokens')} took "
        f"{made.flops / made.fresh_flops:.0%} of the FLOPs of a fresh run over all "
        f"{made.n_after} tokens. Largest logit difference between the two: {off}. "
        f"Likeliest next: “{isolated(made.next_piece)}” and “{isolated(made.fresh_piece)}”, {same}."
    )


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def table(made: Cropped) -> pd.DataFrame:
    """Length and bytes at the three moments."""
    lengths = (made.n_before, made.n_kept, made.n_after)
    return pd.DataFrame(
        {
            "moment": ["before", f"after crop({made.n_kept})", "after the other text"],
            "length": lengths,
            "bytes allocated": [f"{made.nbytes:,}"] * 3,
            "bytes held": [f"{used:,}" for used in made.used],
            "old rows": [
                max(made.n_before - length, 0) if index else 0
                for index, length in enumerate(lengths)
            ],
        }
    )
