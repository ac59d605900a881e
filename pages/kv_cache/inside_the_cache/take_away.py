"""The page "Inside the cache" to take away: charts, tables, both buffers, its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.kv_cache.inside_the_cache import charts, full, numbers
from pages.kv_cache.inside_the_cache.full import Full
from pages.kv_cache.inside_the_cache.run import CacheRun
from ui.export import tables, take_away
from ui.export.take_away import File


def show(run: CacheRun, step: int, full_cache: Full | None, ring_step: int) -> None:
    """The buttons that save files, the code, and the link to this page.

    step, ring_step: the steps, from 0, that the charts mark with a line.
    """
    stem = f"{run.settings.model}_cache"
    take_away.panel(
        [
            take_away.pictures(
                partial(drawn, run, step, full_cache, ring_step), f"{stem}_charts.zip"
            ),
            File("Every step (CSV)", partial(_csv, run), f"{stem}.csv", "text/csv"),
            take_away.arrays("Both buffers, float32 (NPZ)", partial(arrays, run), f"{stem}.npz"),
        ],
        snippet(run, step),
        prefix="inside_the_cache",
        note="The NPZ holds the whole buffers and the uncached logits of every step.",
    )


def drawn(run: CacheRun, step: int, full_cache: Full | None, ring_step: int) -> take_away.Charts:
    """The charts of the page by the names of their files."""
    pictures = {
        "bytes": partial(charts.bytes_chart, numbers.bytes_held(run), step),
        "logit_difference": partial(charts.difference_chart, numbers.logit_differences(run), step),
    }
    if full_cache is not None:
        table, last = full.table(run, full_cache), full.last_fitting(run, full_cache)
        pictures["full_cache"] = partial(charts.drift_chart, table, last, ring_step)
    return pictures


def _csv(run: CacheRun) -> bytes:
    table = numbers.steps_table(run).merge(numbers.uncached_table(run), on="step")
    return tables.csv(table)


def arrays(run: CacheRun) -> dict[str, Any]:
    """The buffers, ids and logits of a run."""
    return {
        "keys": run.keys,
        "values": run.values,
        "prompt_ids": np.array(run.prompt),
        "new_ids": np.array([step.token_id for step in run.steps]),
        "logits": np.stack([step.logits.numpy() for step in run.steps]),
        "differences": np.array([step.difference for step in run.steps], dtype=np.float32),
    }


def snippet(run: CacheRun, step: int) -> str:
    """Python that makes the same run, from the repository's root."""
    settings = run.settings
    return "\n".join(
        [
            "import pretrained",
            "from pages.kv_cache.inside_the_cache.experiment.recording_cache import (",
            "    RecordingCache,",
            "    compare_with_one_pass,",
            "    observe,",
            ")",
            "",
            f'model = pretrained.load({settings.model!a}, device="cpu")',
            f"ids = model.tokenizer.encode({settings.prompt!a}).ids",
            f"cache = RecordingCache.for_model(model.core, {run.n_rows}, keep_all=True)",
            f"generated = list(observe(model.core, ids, cache, max_new_tokens={run.n_steps}))",
            "steps = compare_with_one_pass(model.core, ids, generated)",
            "keys, values = cache.contents()  # (layers, KV heads, rows, size)",
            f"print(steps[{step}].access, steps[{step}].difference, cache.nbytes)",
        ]
    )
