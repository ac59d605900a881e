"""The page "Generated tokens" to take away: charts, rows, every array of the run, its code."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pages.compare.generated_tokens import charts, sink, step
from pages.compare.generated_tokens.run import Generation
from pages.compare.generated_tokens.sink import SinkMeasurements
from pages.compare.generated_tokens.step import HeadMaps
from ui.export import tables, take_away
from ui.export.take_away import File


def show(maps: HeadMaps, step_index: int, measurements: SinkMeasurements | None) -> None:
    """The buttons that save files, the code, and the link to this page."""
    generation = maps.generation
    stem = f"{generation.settings.model}_generated"
    layer, head = maps.view.place
    which = "mean" if layer is None else f"layer{layer}" + ("" if head is None else f"_head{head}")
    rows = f"{stem}_{which}.csv"
    take_away.panel(
        [
            take_away.pictures(
                partial(drawn, maps, step_index, measurements), f"{stem}_charts.zip"
            ),
            File("Rows of this head (CSV)", partial(_csv, maps), rows, "text/csv"),
            take_away.arrays(
                "All heads, float32 (NPZ)", partial(arrays, generation), f"{stem}.npz"
            ),
        ],
        step.snippet(maps, step_index),
        prefix="generated_tokens",
        note="The NPZ holds the weights of all heads, the lengths ‖v W_O‖, and the "
        "log-probabilities of every step. The map has its own PNG and SVG buttons.",
    )


def drawn(
    maps: HeadMaps, step_index: int, measurements: SinkMeasurements | None
) -> take_away.Charts:
    """The bars of the step, and the charts of the attention sink if it was measured."""
    row = step.row(maps, step_index)
    pictures: dict[str, partial[Any]] = {
        f"step_{step_index + 1}": partial(charts.bars, row, maps.largest)
    }
    if measurements is not None:
        layers = sink.by_layer(measurements)
        pictures["sink_weight"] = partial(charts.sink_weight, layers)
        pictures["sink_lengths"] = partial(charts.sink_ratios, layers)
    return pictures


def _csv(maps: HeadMaps) -> bytes:
    return tables.csv(step.all_rows(maps))


def arrays(generation: Generation) -> dict[str, Any]:
    """The arrays of `Trace` under its own names, ids and labels beside them."""
    trace = generation.trace
    return {
        "weights": trace.weights.numpy(),
        "value_norms": trace.value_norms.numpy(),
        "prompt_ids": np.array(trace.prompt),
        "new_ids": np.array(trace.new),
        "logprobs": np.array(trace.logprobs, dtype=np.float32),
        "alternative_ids": trace.alternative_ids.numpy(),
        "alternative_logprobs": trace.alternative_logprobs.numpy(),
        "labels": np.array(generation.labels),
    }
