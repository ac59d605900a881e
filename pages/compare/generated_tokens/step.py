"""The weights of one generation step as shaded text, bars and a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.compare.generated_tokens.run import Generation
from serving import token_text
from serving.heads import HeadId
from ui.canvas.heatmap import ColourScale, Map, heatmap
from ui.canvas.shaded import ShadedToken, shaded_tokens
from ui.text.formatting import format_number, percent
from ui.text.isolated import isolated
from ui.widgets.head_pairs import MANY_TOKENS

ONE, LAYER, ALL = "one head", "mean of the layer's heads", "mean of all heads"


@dataclass(frozen=True)
class HeadView:
    """The selected head or mean of heads, with or without the first token.

    mode: ONE, LAYER or ALL.
    """

    mode: str
    layer: int
    head: int
    without_first: bool

    @property
    def index(self) -> tuple[int | None, int | None]:
        """Layer and head; None means the mean over them."""
        return {ONE: (self.layer, self.head), LAYER: (self.layer, None)}.get(
            self.mode, (None, None)
        )

    @property
    def name(self) -> str:
        """Display name of the head or of the mean."""
        names = {
            ONE: str(HeadId(self.layer, self.head)),
            LAYER: f"layer {self.layer}, mean of its heads",
        }
        return names.get(self.mode, "mean of all heads")


@dataclass(frozen=True)
class HeadMaps:
    """The maps of one head, or of a mean of heads, as drawn. Arrays are float32.

    weights: (S, S), row i belongs to the query at position i. If the first token is left out, its
    column is 0 and the rest of each row is divided by its sum. n_prompt_rows: (S, S), the weights
    as computed by the model. written: (S, S), the lengths ||alpha_ij v_j W_O|| for the computed
    weights, or their mean.
    """

    generation: Generation
    view: HeadView
    weights: np.ndarray
    n_prompt_rows: np.ndarray
    written: np.ndarray

    @property
    def largest(self) -> float:
        """The largest weight in the generated rows, the upper end of the color scale."""
        return max(float(self.weights[self.generation.n_prompt - 1 :].max()), 1e-12)

    @property
    def square_root(self) -> bool:
        """Whether colors follow the square root, because long texts have small weights."""
        return len(self.weights) >= MANY_TOKENS

    @property
    def title(self) -> str:
        """Title of the pictures: model, head, and a note if token 0 is left out."""
        aside = ", without the first token" if self.view.without_first else ""
        return f"{self.generation.title}, {self.view.name}{aside}"


def show(generation: Generation, view: HeadView) -> HeadMaps:
    """Compute the maps of one head, or of a mean of heads, for all steps."""
    import torch

    from attention_core.analysis.contributions import contributions
    from attention_core.analysis.hide_keys import hide_keys
    from pages.compare.generated_tokens.experiment.trace import average_map

    trace = generation.trace
    computed = average_map(trace.weights, *view.index)
    layer, head = view.index
    layers = slice(None) if layer is None else slice(layer, layer + 1)
    written = average_map(
        contributions(trace.weights[layers], trace.value_norms[layers]),
        None if layer is None else 0,
        head,
    )
    weights = computed
    if view.without_first:
        first = torch.zeros(computed.shape[-1], dtype=torch.bool)
        first[0] = True
        weights = hide_keys(computed, first, renormalise=True)
    return HeadMaps(generation, view, weights.numpy(), computed.numpy(), written.numpy())


def text(maps: HeadMaps, step: int) -> None:
    """Show the text as tokens shaded by the weights of step `step` (from 0)."""
    generation, query = maps.generation, maps.generation.trace.query(step)
    row, lengths = maps.weights[query], maps.written[query]
    tokens = []
    for place, (piece, ends) in enumerate(
        zip(generation.pieces, generation.line_ends, strict=True)
    ):
        known = place <= query
        detail = (
            [f"adds a vector of length {format_number(lengths[place], '.4g')}"] if known else []
        )
        if place == query + 1:
            probability = np.exp(generation.trace.logprobs[step])
            detail.append(f"chosen with probability {percent(probability)}")
        tokens.append(
            ShadedToken(
                piece,
                float(row[place]) if known else None,
                ", ".join(detail),
                {query: "asks", query + 1: "chosen"}.get(place, ""),
                is_future=place > query + 1,
                line_after=ends,
            )
        )
    shaded_tokens(
        tokens,
        largest=maps.largest,
        square_root=maps.square_root,
        title=maps.title,
        hint="To read a weight, point at a token, or focus the text and use the arrow keys.",
        key="generated_tokens_text",
    )


def sentence(maps: HeadMaps, step: int) -> str:
    """A sentence about this step: the query, the keys it attends to, and the chosen token."""
    generation, query = maps.generation, maps.generation.trace.query(step)
    row = maps.weights[query]
    best = int(row.argmax())
    labels, probability = generation.labels, np.exp(generation.trace.logprobs[step])
    most = (
        f"attends most to “{isolated(labels[best])}” (position {best}), with a weight of "
        f"{percent(row[best])}."
        if row[best] > 0
        else "gives all its attention to the token that is left out here."
    )
    drawn = " before temperature" if generation.settings.temperature else ""
    return (
        f"In step {step + 1}, “{isolated(labels[query])}” (position {query}) {most} The model then "
        f"chose “{isolated(labels[query + 1])}”, with a probability of {percent(probability)}"
        f"{drawn}."
    )


def row(maps: HeadMaps, step: int) -> pd.DataFrame:
    """One row per key of the run: `position`, `token`, and its `weight` in this step.

    The weight is NaN for tokens that didn't exist yet at this step.
    """
    query = maps.generation.trace.query(step)
    visible = np.arange(len(maps.weights)) <= query
    return pd.DataFrame(
        {
            "position": range(len(maps.weights)),
            "token": maps.generation.labels[: len(maps.weights)],
            "weight": np.where(visible, maps.weights[query].astype(float), np.nan),
        }
    )


def alternatives(generation: Generation, step: int) -> pd.DataFrame:
    """The most likely tokens at this step, and the chosen one if it isn't among them."""
    trace = generation.trace
    ids = trace.alternative_ids[step].tolist()
    logprobs = trace.alternative_logprobs[step].tolist()
    if trace.new[step] not in ids:
        ids.append(trace.new[step])
        logprobs.append(trace.logprobs[step])
    tokenizer = generation.pretrained.tokenizer
    return pd.DataFrame(
        {
            "token": token_text.pieces(tokenizer, ids),
            "probability": np.exp(logprobs),
            "chosen": ["✓" if i == trace.new[step] else "" for i in ids],
        }
    )


def every_step(maps: HeadMaps) -> None:
    """Show all rows of weights as a map, starting with the prompt's."""
    weights = Map(
        maps.weights,
        maps.generation.labels[: len(maps.weights)],
        title=maps.title,
        causal=True,
        scale=ColourScale(maps.largest, maps.square_root),
    )
    heatmap(weights, key="generated_tokens_map")


def row_table(maps: HeadMaps, step: int) -> pd.DataFrame:
    """The weights of one step as a table with one row per key."""
    query = maps.generation.trace.query(step)
    visible = slice(0, query + 1)
    return pd.DataFrame(
        {
            "position": range(query + 1),
            "token": maps.generation.labels[visible],
            "weight": maps.weights[query, visible],
            "computed weight": maps.n_prompt_rows[query, visible],
            "length of the output": maps.written[query, visible],
        }
    )


def all_rows(maps: HeadMaps) -> pd.DataFrame:
    """The tables of `row_table` for all steps, concatenated."""
    generation = maps.generation
    tables = []
    for step in range(generation.trace.n_steps):
        table = row_table(maps, step).rename(columns={"position": "key position", "token": "key"})
        query = generation.trace.query(step)
        about = {
            "step": step + 1,
            "query position": query,
            "query": generation.labels[query],
            "chosen": generation.labels[query + 1],
            "log-probability": generation.trace.logprobs[step],
        }
        for place, (name, value) in enumerate(about.items()):
            table.insert(place, name, value)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def snippet(maps: HeadMaps, step: int) -> str:
    """Python code that recomputes this step's row, run from the repository's root."""
    generation, settings = maps.generation, maps.generation.settings
    n_steps = generation.trace.n_steps
    layer, head = maps.view.index
    lines = [
        "import pretrained",
        "from attention_core import Sampling",
        "from pages.compare.generated_tokens.experiment.trace import average_map, trace",
        "",
        f'model = pretrained.load({settings.model!a}, device="cpu")',
        f"ids = model.tokenizer.encode({settings.prompt!a}).ids",
        f"sampling = Sampling(temperature={settings.temperature!r}, seed={settings.seed})",
        f"run = trace(model.core, ids, max_new_tokens={n_steps}, sampling=sampling)",
        f"row = average_map(run.weights, {layer}, {head})[run.query({step})]",
    ]
    if maps.view.without_first:
        lines += ["row[0] = 0", "row = row / row.sum().clamp(min=1e-12)"]
    return "\n".join([*lines, "print(row)"])
