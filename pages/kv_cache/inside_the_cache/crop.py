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
from serving.prompts import prepare_prompt
from ui.text.formatting import format_number
from ui.text.isolated import isolated

_EMPTY = "There is nothing to continue with. Type at least one word."


@dataclass(frozen=True)
class CropResult:
    """A run's cache after it was cropped and continued with a different text.

    keys, values: the whole buffers after the continuation, (L, H_kv, N, D). is_unchanged: whether
    the crop left every stored number unchanged. nbytes: size of the model's cache. nbytes_used:
    bytes that hold tokens before the crop, after it, and after the continuation. pieces: texts of
    the new tokens. difference: largest logit difference from a fresh run.
    """

    n_before: int
    n_kept: int
    pieces: tuple[str, ...]
    keys: np.ndarray
    values: np.ndarray
    is_unchanged: bool
    nbytes: int
    nbytes_used: tuple[int, int, int]
    rows_written: tuple[int, ...]
    difference: float
    next_piece: str
    fresh_piece: str
    flops: int
    fresh_flops: int

    @property
    def n_after(self) -> int:
        """How many tokens are stored after the continuation."""
        return self.n_kept + len(self.pieces)


def _bytes(result: CropResult) -> int:
    # the field `nbytes` is the size of the model's cache, not of these copies
    return result.keys.nbytes + result.values.nbytes


@cached(key=lambda run, n_kept, text: (run.key, n_kept, text), size=_bytes)
def crop_result(run: CacheRun, n_kept: int, text: str) -> CropResult:
    """Crop the run's cache to `n_kept` tokens and continue with a text; cached.

    Raises: OverLimit if the text is too long or doesn't fit into the context; ValueError if it
    contains no token.
    """
    import torch

    from pages.kv_cache.inside_the_cache.experiment.crop import crop_and_continue

    model = run.pretrained
    tokens = prepare_prompt(
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
    return CropResult(
        n_before=result.n_before,
        n_kept=n_kept,
        pieces=token_text.pieces(model.tokenizer, new),
        keys=keys,
        values=values,
        is_unchanged=all(map(torch.equal, result.before, result.cropped)),
        nbytes=result.nbytes,
        nbytes_used=result.nbytes_used,
        rows_written=result.access.rows_written,
        difference=result.difference,
        next_piece=next_piece,
        fresh_piece=fresh_piece,
        flops=result.flops,
        fresh_flops=result.fresh_flops,
    )


def labels(run: CacheRun, result: CropResult, *, after: bool) -> list[str]:
    """Labels of all rows after the crop or, if `after`, after the continuation."""
    texts = []
    for row in range(result.keys.shape[2]):
        piece = run.pieces[row] if row < result.n_before else ""
        if row < result.n_kept:
            mark = READ if after else ""
        elif after and row < result.n_after:
            mark, piece = WRITTEN + READ, result.pieces[row - result.n_kept]
        else:
            mark = OLD if row < result.n_before else ""
        texts.append(row_label(mark, row, piece))
    return texts


def pictures(run: CacheRun, result: CropResult, layer: int, head: int) -> None:
    """Draw the buffer of keys after the crop and after the continuation."""
    n_rows = result.keys.shape[2]
    name = names(run)[0]
    before = np.full((n_rows, run.keys.shape[3]), np.nan, dtype=np.float32)
    before[: result.n_before] = run.keys[layer, head, : result.n_before]
    after = result.keys[layer, head].copy()
    after[max(result.n_before, result.n_after) :] = np.nan
    one_scale = scale(np.concatenate([run.keys[layer, head], result.keys[layer, head]]))
    for column, rows, continued, title in zip(
        st.columns(2, gap="large"),
        (before, after),
        (False, True),
        (
            f"After crop({result.n_kept}), remaining rows framed",
            "After the new text, its rows framed",
        ),
        strict=True,
    ):
        with column:
            buffer(
                rows,
                labels(run, result, after=continued),
                one_scale,
                name=name,
                title=f"{title}: {name}s, layer {layer}, KV head {head}",
                framed=result.rows_written if continued else range(result.n_kept),
                key=f"inside_the_cache_crop_{'after' if continued else 'before'}",
            )


def sentence(result: CropResult) -> str:
    """Sentences about the reused rows, the saved work and the logit difference."""
    same = "the same" if result.next_piece == result.fresh_piece else "different"
    off = (
        format_number(result.difference, ".1e") if result.difference else "none, every bit is equal"
    )
    return (
        f"{_plural(result.n_kept, 'row was', 'rows were')} reused, so "
        f"{_plural(len(result.pieces), 'new token', 'new tokens')} took only "
        f"{result.flops / result.fresh_flops:.0%} of the FLOPs of a fresh run over all "
        f"{result.n_after} tokens. Largest logit difference between the two: {off}. "
        f"Most likely next token: “{isolated(result.next_piece)}” with the cropped cache and "
        f"“{isolated(result.fresh_piece)}” in the fresh run ({same})."
    )


def _plural(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def table(result: CropResult) -> pd.DataFrame:
    """Cache length and bytes before the crop, after it, and after the continuation."""
    lengths = (result.n_before, result.n_kept, result.n_after)
    return pd.DataFrame(
        {
            "moment": ["before", f"after crop({result.n_kept})", "after the new text"],
            "length": lengths,
            "bytes allocated": [f"{result.nbytes:,}"] * 3,
            "bytes used": [f"{used:,}" for used in result.nbytes_used],
            "old rows": [
                max(result.n_before - length, 0) if index else 0
                for index, length in enumerate(lengths)
            ],
        }
    )
