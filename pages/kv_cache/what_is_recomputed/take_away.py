"""The page "What is recomputed" to take away: charts, counts, the matrices shown, its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.kv_cache.what_is_recomputed import charts, counts
from pages.kv_cache.what_is_recomputed.counts import Contrast
from pages.kv_cache.what_is_recomputed.pictures import StepView
from ui.export import tables, take_away
from ui.export.take_away import File


def show(view: StepView, scope: str, contrast: Contrast | None) -> None:
    """The buttons that save files, the code, and the link to this page."""
    growth = view.growth
    stem = f"{growth.settings.model}_recomputed"
    place = f"step{view.step_index + 1}_layer{view.layer}_head{view.head}"
    take_away.panel(
        [
            take_away.pictures(partial(drawn, view, contrast), f"{stem}_charts.zip"),
            File(
                "Counts of this step (CSV)", partial(_csv, view, scope), f"{stem}.csv", "text/csv"
            ),
            take_away.arrays(
                "This head's matrices (NPZ)", partial(arrays, view), f"{stem}_{place}.npz"
            ),
        ],
        snippet(view),
        prefix="what_is_recomputed",
        note="The NPZ holds every column of the head: this step without a cache, with it, and the "
        "step before. All steps have a CSV of their own above.",
    )


def drawn(view: StepView, contrast: Contrast | None) -> take_away.Charts:
    """The charts of the page by the names of their files."""
    rows = charts.rows_so_far(counts.totals(view.growth))
    pictures: dict[str, partial[Any]] = {
        "rows_so_far": partial(charts.totals_chart, rows, view.step_index)
    }
    if contrast is not None:
        table = counts.contrast_table(view.growth, contrast)
        pictures["decoder_and_encoder"] = partial(charts.contrast_chart, table)
    return pictures


def _csv(view: StepView, scope: str) -> bytes:
    return tables.csv(counts.step_table(view, scope))


def arrays(view: StepView) -> dict[str, Any]:
    """The head's six matrices: `queries`, `cached_queries`, `before_queries`, and so on."""
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
    """Python that prints how far the boxed parts moved."""
    settings, step_index = view.growth.settings, view.step_index
    lines = [
        "import pretrained",
        "from pages.kv_cache.what_is_recomputed.experiment import grow, parts, repeated",
        "",
        f'model = pretrained.load({settings.model!a}, device="cpu")',
        f"ids = model.tokenizer.encode({settings.prompt!a}).ids",
        f"steps = list(grow(model.core, ids, n_steps={max(step_index, 1) + 1}))",
        f"before, now = steps[{max(step_index, 1) - 1}], steps[{max(step_index, 1)}]",
        f"old = before.full.head({view.layer}, {view.head})",
        f"new = now.full.head({view.layer}, {view.head})",
        "for name in new:",
        "    print(name, tuple(new[name].shape), float(repeated(old[name], new[name], name)))",
        "for part in parts(model.core.config, now.n_tokens, now.n_before):",
        "    print(part)",
        'print("with the cache, logits differ by at most", now.cache_difference)',
    ]
    return "\n".join(lines)
