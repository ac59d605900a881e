"""Downloads of the page "What is recomputed": counts, the matrices shown and its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.kv_cache.what_is_recomputed import counts
from pages.kv_cache.what_is_recomputed.pictures import StepView
from ui.export import downloads


def show(view: StepView, scope: str) -> None:
    """Show the page's files, code and link."""
    stem = f"{view.growth.settings.model}_recomputed"
    position = f"step{view.step_index + 1}_layer{view.layer}_head{view.head}"
    downloads.panel(
        "what_is_recomputed",
        downloads.csv("Counts of this step", partial(counts.step_table, view, scope), stem),
        downloads.npz("This head's matrices", partial(arrays, view), f"{stem}_{position}"),
        snippet=snippet(view),
        note="The NPZ file contains all columns of the head: this step without a cache, this step "
        "with one, and the previous step. The CSV file for all steps is above.",
    )


def arrays(view: StepView) -> dict[str, Any]:
    """The head's matrices of each pass: `queries`, `cached_queries`, `before_queries`, ..."""
    step, growth = view.step, view.growth
    tensors = {"token_ids": np.array(growth.ids[: step.n_tokens])}
    sources = {"": step.full, "cached_": step.cached}
    if step.n_before:
        sources["before_"] = growth.steps[view.step_index - 1].full
    for prefix, matrices in sources.items():
        for name, matrix in matrices.head(view.layer, view.head).items():
            tensors[prefix + name] = matrix.numpy()
    return tensors


def snippet(view: StepView) -> str:
    """Python code that prints how much the outlined parts changed between two steps."""
    settings, step_index = view.growth.settings, view.step_index
    lines = [
        "import pretrained",
        "from pages.kv_cache.what_is_recomputed.experiment import grow, parts, change_of_old_part",
        "",
        f'model = pretrained.load({settings.model!a}, device="cpu")',
        f"ids = model.tokenizer.encode({settings.prompt!a}).ids",
        f"steps = list(grow(model.core, ids, n_steps={max(step_index, 1) + 1}))",
        f"before, now = steps[{max(step_index, 1) - 1}], steps[{max(step_index, 1)}]",
        f"old = before.full.head({view.layer}, {view.head})",
        f"new = now.full.head({view.layer}, {view.head})",
        "for name in new:",
        "    print(name, tuple(new[name].shape), float(change_of_old_part(old[name], new[name], "
        "name)))",
        "for part in parts(model.core.config, now.n_tokens, now.n_before):",
        "    print(part)",
        'print("with the cache, logits differ by at most", now.cache_difference)',
    ]
    return "\n".join(lines)
