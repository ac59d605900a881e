"""The Heads page to take away: files with every number, a page that works offline, code, a link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pages.compare.heads import offline, open_head, values
from pages.compare.heads.choices import Drawing
from pages.compare.heads.values import MapOptions
from serving.runs import Run
from ui.canvas import heatmap, mosaic
from ui.canvas.mosaic import Arrangement
from ui.export import take_away
from ui.export.take_away import File
from ui.widgets import head_pairs
from ui.widgets.head_choice import HeadChoice

MOSAIC = "heads_mosaic"  # the key of the mosaic
MOST_OPENED = 12_000_000  # bytes of heads that an offline page can open; beyond, it has only one


@dataclass(frozen=True)
class View:
    """The page as the visitor sees it."""

    run: Run
    choice: HeadChoice
    reading: MapOptions
    drawing: Drawing
    arrangement: Arrangement


SNIPPET = """\
import torch
import pretrained

model = pretrained.load({model!r}, device="cpu")
tokens = model.tokenizer.encode({text})
with torch.inference_mode():
    records = model.core(torch.tensor([tokens.ids]), record=True).records
weights = records[{layer}].weights[0, {head}]  # (T, S) of layer {layer}, head {head}
print(weights[{query}, {key}])  # {query_label} -> {key_label}
"""


def show(view: View, pair: tuple[int, int]) -> None:
    """Buttons, the code and the link."""
    run, choice = view.run, view.choice
    name = f"{run.model}_layer{choice.layer}_head{choice.head}"
    take_away.panel(
        [
            File("This head (CSV)", partial(head_csv, run, choice), f"{name}.csv", "text/csv"),
            take_away.arrays(
                "All heads (NPZ)", partial(arrays, run, view.reading), f"{run.model}_heads.npz"
            ),
            File(
                "Page for offline use (HTML)",
                partial(offline_page, view),
                f"{name}.html",
                "text/html",
            ),
        ],
        snippet(run, choice, pair),
        prefix="heads",
        note="The files hold the full float32 values of the forward pass, before anything is "
        "left out; the NPZ also has queries, keys, values, the lengths ‖v W_O‖ and, where keys are "
        "left out or contributions are shown, the values as shown. Each picture has its own PNG "
        "and SVG buttons.",
    )


def head_csv(run: Run, choice: HeadChoice) -> bytes:
    """Every weight of the head that is not masked, the strongest first."""
    table: str = head_pairs.pairs(run, choice).to_csv(index=False)
    return table.encode()


def arrays(run: Run, reading: MapOptions) -> dict[str, Any]:
    """All arrays of the run, float32, with the tokens."""
    result: dict[str, Any] = {
        "weights": run.weights,
        "q": run.q,
        "k": run.k,
        "v": run.v,
        "value_norms": run.value_norms,
        "token_ids": np.array(run.tokens.ids),
        "tokens": np.array(run.tokens.labels),
    }
    if reading != MapOptions():
        result["values_as_shown"] = values.values(run, reading)
        result["keys_left_out"] = np.array(reading.hidden, dtype=np.int64)
    return result


def offline_page(view: View) -> bytes:
    """One HTML file with the mosaic and the open head, which asks nobody for anything.

    A click opens every head, exactly, where the file stays small enough; else only the open one.
    """
    run, arrangement = view.run, view.arrangement
    n_heads = run.weights.shape[1]
    every = run.weights.nbytes <= MOST_OPENED
    numbers = range(run.weights.shape[0] * n_heads) if every else [arrangement.selected]
    opened: dict[int | str, offline.Data] = {
        number: _opened(view, replace(view.choice, layer=number // n_heads, head=number % n_heads))
        for number in numbers
    }
    packed = values.packed(run, view.reading, name=MOSAIC)
    notes = (
        f"Model: {run.title}. Sentence: {run.tokens.text}",
        f"A value read from all heads is within ±{packed.stated_error} of the tensor; "
        "the open head holds the tensor's own float32 values. Click a head to open it.",
        "" if every else "This file holds one open head: the text is long.",
    )
    return offline.page(
        f"{run.title}: {view.reading.measure} of every head",
        [
            offline.OfflineComponent("", "", mosaic.ARRANGE_JS, arrangement.of(MOSAIC)),
            offline.OfflineComponent.of(mosaic.canvas, packed.data),
            offline.OfflineComponent.of(
                heatmap.canvas,
                opened[arrangement.selected],
                follows="open",
                variants=opened,
                missing="This file holds one open head only.",
            ),
        ],
        [note for note in notes if note],
    ).encode()


def _opened(view: View, choice: HeadChoice) -> bytes:
    """What the map of a head draws."""
    array, scale = open_head.picture(view.run, choice, view.reading, view.drawing)
    return heatmap.pack(
        heatmap.Map(
            array,
            view.run.tokens.labels,
            title=f"{choice.title}: {view.reading.measure}",
            causal=view.run.causal,
            scale=scale,
            value_name=values.UNITS[view.reading.measure],
            hidden_text=open_head.LEFT_OUT,
        )
    )


def snippet(run: Run, choice: HeadChoice, pair: tuple[int, int]) -> str:
    """Python that computes the open head anew and prints the chosen pair's weight."""
    query, key = pair
    return SNIPPET.format(
        model=run.model,
        text=ascii(run.tokens.text),
        layer=choice.layer,
        head=choice.head,
        query=query,
        key=key,
        query_label=ascii(run.tokens.labels[query]),
        key_label=ascii(run.tokens.labels[key]),
    )
