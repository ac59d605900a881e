"""Cropping a cache and continuing with a different text after the remaining rows."""

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
from pages.kv_cache.inside_the_cache.run import CacheRun, read_only
from serving import compute, token_text
from serving.cache import cached
from serving.limits import MAX_INSIDE_CONTINUATION, OverLimit
from serving.prompts import prepare
from ui.text.isolated import isolated
from ui.text.number_text import written

_EMPTY = "There is nothing to continue with. Type at least one word."


@dataclass(frozen=True)
class Cropped:
    """A run's cache after it was cropped and continued with a different text.

    keys, values: the whole buffers after the continuation, (L, H_kv, N, D). untouched: whether
    the crop left every stored number unchanged. nbytes: size of the model's cache. used: bytes
    that hold tokens before the crop, after it, and after the continuation. pieces: texts of the
    new tokens. difference: largest logit difference from a fresh run.
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
        """How many tokens are stored after the continuation."""
        return self.n_kept + len(self.pieces)


def _bytes(cropped: Cropped) -> int:
    # the field `nbytes` is the size of the model's cache, not of these copies
    return cropped.keys.nbytes + cropped.values.nbytes


@cached(key=lambda run, n_kept, text: (run.key, n_kept, text), size=_bytes)
def cropped(run: CacheRun, n_kept: int, text: str) -> Cropped:
    """Crop the run's cache to `n_kept` tokens and continue with a text; cached.

    Raises: OverLimit if the text is too long or doesn't fit into the context; ValueError if it
    contains no token.
    """
    import torch

    from pages.kv_cache.inside_the_cache.experiment.crop import crop_and_continue

    model = run.pretrained
    tokens = prepare(
        model, text, MAX_INSIDE_CONTINUATION, "a text to continue with", empty=_EMPTY
    ).tokens
    new = list(tokens.ids)
    if tokens.special[0]:  # a beginning-of-text token doesn't belong inside a text
        del new[0]
    if not new:
        raise ValueError(_EMPTY)
    context = run.config.context_length
    if n_kept + len(new) > context:
        raise OverLimit(
            f"{n_kept} remaining and {len(new)} new tokens exceed this model's context of "
            f"{context} tokens. Crop to fewer tokens or shorten the text."
        )
    rows = (torch.tensor(run.keys), torch.tensor(run.values))
    with compute.slot():
        result = crop_and_continue(model.core, run.run_ids, rows, n_kept, new)
    keys, values = (read_only(tensor.numpy()) for tensor in result.after)
    next_piece, fresh_piece = token_text.pieces(model.tokenizer, [result.next_id, result.fresh_id])
    return Cropped(
        n_before=result.n_before,
        n_kept=n_kept,
        pieces=token_text.pieces(model.tokenizer, new),
        keys=keys,
        values=values,
        untouched=all(map(torch.equal, result.before, result.cropped)),
        nbytes=result.nbytes,
        used=result.used,
        written=result.access.rows_written,
        difference=result.difference,
        next_piece=next_piece,
        fresh_piece=fresh_piece,
        flops=result.flops,
        fresh_flops=result.fresh_flops,
    )


def labels(run: CacheRun, cropped: Cropped, *, continued: bool) -> list[str]:
    """Labels of all rows after the crop or, if `continued`, after the continuation."""
    texts = []
    for row in range(cropped.keys.shape[2]):
        piece = run.pieces[row] if row < cropped.n_before else ""
        if row < cropped.n_kept:
            mark = READ if continued else ""
        elif continued and row < cropped.n_after:
            mark, piece = WRITTEN + READ, cropped.pieces[row - cropped.n_kept]
        else:
            mark = OLD if row < cropped.n_before else ""
        texts.append(row_label(mark, row, piece))
    return texts


def pictures(run: CacheRun, cropped: Cropped, layer: int, head: int) -> None:
    """Draw the buffer of keys after the crop and after the continuation."""
    n_rows = cropped.keys.shape[2]
    name = names(run)[0]
    before = np.full((n_rows, run.keys.shape[3]), np.nan, dtype=np.float32)
    before[: cropped.n_before] = run.keys[layer, head, : cropped.n_before]
    after = cropped.keys[layer, head].copy()
    after[max(cropped.n_before, cropped.n_after) :] = np.nan
    one_scale = scale(np.concatenate([run.keys[layer, head], cropped.keys[layer, head]]))
    for column, rows, continued, title in zip(
        st.columns(2, gap="large"),
        (before, after),
        (False, True),
        (
            f"After crop({cropped.n_kept}), remaining rows framed",
            "After the new text, its rows framed",
        ),
        strict=True,
    ):
        with column:
            buffer(
                rows,
                labels(run, cropped, continued=continued),
                one_scale,
                name=name,
                title=f"{title}: {name}s, layer {layer}, KV head {head}",
                framed=cropped.written if continued else range(cropped.n_kept),
                key=f"inside_the_cache_crop_{'after' if continued else 'before'}",
            )


def sentence(cropped: Cropped) -> str:
    """Sentences about the reused rows, the saved work and the logit difference."""
    same = "the same" if cropped.next_piece == cropped.fresh_piece else "different"
    off = written(cropped.difference, ".1e") if cropped.difference else "none, every bit is equal"
    return (
        f"{_counted(cropped.n_kept, 'row was', 'rows were')} reused, so "
        f"{_counted(len(cropped.pieces), 'new token', 'new tokens')} took only "
        f"{cropped.flops / cropped.fresh_flops:.0%} of the FLOPs of a fresh run over all "
        f"{cropped.n_after} tokens. Largest logit difference between the two: {off}. "
        f"Most likely next token: “{isolated(cropped.next_piece)}” with the cropped cache and "
        f"“{isolated(cropped.fresh_piece)}” in the fresh run ({same})."
    )


def _counted(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def table(cropped: Cropped) -> pd.DataFrame:
    """Cache length and bytes before the crop, after it, and after the continuation."""
    lengths = (cropped.n_before, cropped.n_kept, cropped.n_after)
    return pd.DataFrame(
        {
            "moment": ["before", f"after crop({cropped.n_kept})", "after the new text"],
            "length": lengths,
            "bytes allocated": [f"{cropped.nbytes:,}"] * 3,
            "bytes used": [f"{used:,}" for used in cropped.used],
            "old rows": [
                max(cropped.n_before - length, 0) if index else 0
                for index, length in enumerate(lengths)
            ],
        }
    )
