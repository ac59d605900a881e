"""Downloads of the page "Inside the cache": its table, both buffers and its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pages.kv_cache.inside_the_cache import numbers
from pages.kv_cache.inside_the_cache.run import CacheRun
from ui.export import downloads


def show(run: CacheRun, step: int) -> None:
    """Show the page's files, code and link."""
    stem = f"{run.settings.model}_cache"
    downloads.panel(
        "inside_the_cache",
        downloads.csv("All steps", partial(every_step, run), stem),
        downloads.npz("Both buffers, float32", partial(arrays, run), stem),
        snippet=snippet(run, step),
        note="The NPZ file contains both buffers in full and the uncached logits of every step.",
    )


def every_step(run: CacheRun) -> pd.DataFrame:
    """Each step's use of the cache, and its cost without one."""
    return numbers.steps_table(run).merge(numbers.uncached_table(run), on="step")


def arrays(run: CacheRun) -> dict[str, Any]:
    """The buffers, token IDs and logits of a run."""
    return {
        "keys": run.keys,
        "values": run.values,
        "prompt_ids": np.array(run.prompt),
        "new_ids": np.array([step.token_id for step in run.steps]),
        "logits": np.stack([step.logits.numpy() for step in run.steps]),
        "differences": np.array([step.difference for step in run.steps], dtype=np.float32),
    }


def snippet(run: CacheRun, step: int) -> str:
    """Python code that repeats the run; it must be started in the repository's root."""
    settings = run.settings
    return "\n".join(
        [
            "import pretrained",
            "from pages.kv_cache.inside_the_cache.experiment.recording_cache import (",
            "    RecordingCache,",
            "    compare_with_one_pass,",
            "    record_steps,",
            ")",
            "",
            f'model = pretrained.load({settings.model!a}, device="cpu")',
            f"ids = model.tokenizer.encode({settings.prompt!a}).ids",
            f"cache = RecordingCache.for_model(model.core, {run.n_rows}, keep_all=True)",
            f"generated = list(record_steps(model.core, ids, cache, max_new_tokens={run.n_steps}))",
            "steps = compare_with_one_pass(model.core, ids, generated)",
            "keys, values = cache.contents()  # (layers, KV heads, rows, size)",
            f"print(steps[{step}].access, steps[{step}].difference, cache.nbytes)",
        ]
    )
