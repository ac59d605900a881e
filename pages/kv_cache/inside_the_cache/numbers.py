"""Tables of bytes, accesses and logits of every step, and the size formula."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from pages.kv_cache.inside_the_cache.pictures import span
from pages.kv_cache.inside_the_cache.run import CacheRun
from ui.text.formatting import format_number

ALLOCATED, USED = "allocated", "used by tokens"


def formula_bytes(run: CacheRun, n_tokens: int) -> int:
    """Bytes of `n_tokens` rows in all layers by the core's formula, without a window."""
    from attention_core import cache_bytes

    whole = replace(run.config, window=None)
    return cache_bytes(whole, n_tokens, bytes_per_value=run.value_bytes)


def formula(run: CacheRun, step: int) -> str:
    """The formula with its numbers and result, and the size that the cache reports."""
    model, step_record = run.config, run.steps[step]
    if model.latent is not None:
        per_token = f"({model.latent.kv_rank} latent + {model.latent.rope_head_size} rotary key)"
    else:
        per_token = f"{model.kv_heads} KV heads × {model.d_head} × 2 (K and V)"
    lines = []
    for what, name, n_tokens, n_bytes in (
        ("allocated", "nbytes", run.n_rows, step_record.nbytes),
        (f"after step {step + 1}", "nbytes_used", run.length(step), step_record.nbytes_used),
    ):
        lines.append(
            f"{what}: {model.n_layers} layers × 1 sequence × {n_tokens} tokens × {per_token} × "
            f"{run.value_bytes} bytes = {formula_bytes(run, n_tokens):,} bytes; "
            f"cache.{name} reports {n_bytes:,}"
        )
    return "\n".join(lines)


def steps_table(run: CacheRun) -> pd.DataFrame:
    """Every step with the cache: what it ran, wrote and read."""
    rows = []
    for index, step in enumerate(run.steps):
        access, length = step.access, run.length(index)
        rows.append(
            {
                "step": index + 1,
                "kind": step.kind,
                "ran": "the prompt" if index == 0 else run.pieces[length - 1],
                "written": span(access.rows_written),
                "bytes written": access.bytes_written,
                "read": span(access.rows_read),
                "bytes read": access.bytes_read,
                "bytes used": step.nbytes_used,
                "by formula": formula_bytes(run, length),
            }
        )
    return pd.DataFrame(rows)


def uncached_table(run: CacheRun) -> pd.DataFrame:
    """Every step without the cache, and how its logits compare with the cached ones."""
    return pd.DataFrame(
        {
            "step": index + 1,
            "tokens to run": step.uncached_rows,
            "recomputed": step.uncached_rows - len(step.access.new),
            "FLOPs with cache": step.flops,
            "FLOPs without": step.uncached_flops,
            "logit difference": step.difference,
            "chose": run.pieces[run.length(index)],
            "same token": "yes" if step.token_id == step.uncached_token_id else "no",
        }
        for index, step in enumerate(run.steps)
    )


def bytes_held(run: CacheRun) -> pd.DataFrame:
    """Two rows per step: the `bytes` allocated and used."""
    return pd.DataFrame(
        {
            "step": [number + 1 for number in range(run.n_steps) for _ in range(2)],
            "what": [ALLOCATED, USED] * run.n_steps,
            "bytes": [n for step in run.steps for n in (step.nbytes, step.nbytes_used)],
        }
    )


def logit_differences(run: CacheRun) -> pd.DataFrame:
    """One row per step: largest logit `difference`, and whether the token is the `same`."""
    return pd.DataFrame(
        {
            "step": index + 1,
            "difference": step.difference,
            "same": "yes" if step.token_id == step.uncached_token_id else "no",
        }
        for index, step in enumerate(run.steps)
    )


def verdict(run: CacheRun) -> str:
    """Sentences about the largest logit difference and whether the tokens agree."""
    largest = max(step.difference for step in run.steps)
    same = sum(step.token_id == step.uncached_token_id for step in run.steps)
    return (
        f"Over all {run.n_steps} steps, the logits differ by at most "
        f"**{format_number(largest, '.1e')}**, and **{same} of {run.n_steps}** choose the same "
        "token. "
        "For the comparison, the whole text ran once more without the cache, in a single pass. "
        "One pass is enough because the causal mask hides later tokens from every row. "
        "The remaining differences come from rounding, since the sums are computed in a different "
        "order. On these models, that's 0.00001 to 0.0001 in float32. A much larger difference "
        "would be a bug in the cache."
    )
