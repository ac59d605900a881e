"""One step of a generation: its query's weights as a shaded text, as bars and as a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.compare.generated_tokens.run import Generation
from pretrained.tokenization.tokens import printable
from serving import models
from serving.heads import HeadId
from ui.canvas.heatmap import ColourScale, Map, heatmap
from ui.canvas.shaded import Shaded, shaded
from ui.widgets.head_picture import MANY_TOKENS, isolated

ONE, LAYER, ALL = "one head", "mean of the layer's heads", "mean of all heads"


@dataclass(frozen=True)
class Look:
    """What is looked at: a head, or a mean (`which`), and whether the first token is left out."""

    which: str
    layer: int
    head: int
    without_first: bool

    @property
    def place(self) -> tuple[int | None, int | None]:
        """Layer and head, None where a mean is taken."""
        return {ONE: (self.layer, self.head), LAYER: (self.layer, None)}.get(
            self.which, (None, None)
        )

    @property
    def name(self) -> str:
        """How it is named on screen."""
        names = {
            ONE: str(HeadId(self.layer, self.head)),
            LAYER: f"layer {self.layer}, mean of its heads",
        }
        return names.get(self.which, "mean of all heads")


@dataclass(frozen=True)
class Shown:
    """What the pictures of one look show. Arrays are float32.

    weights: (S, S), row i the query at position i; without the first token, if so chosen, the rest
    divided by its sum. computed: (S, S), the same as the model computed them. written: (S, S),
    ||alpha_ij v_j W_O|| of the computed ones, or its mean. largest: of the rows that chose a token.
    """

    made: Generation
    look: Look
    weights: np.ndarray
    computed: np.ndarray
    written: np.ndarray

    @property
    def largest(self) -> float:
        """The largest weight of the generated rows, at which the colours end."""
        return max(float(self.weights[self.made.n_prompt - 1 :].max()), 1e-12)

    @property
    def square_root(self) -> bool:
        """Whether colours go by the root: in long texts most weights are small."""
        return len(self.weights) >= MANY_TOKENS

    @property
    def title(self) -> str:
        """The model, the head, and what was left out."""
        aside = ", the first token left out" if self.look.without_first else ""
        return f"{self.made.title}, {self.look.name}{aside}"


def show(made: Generation, look: Look) -> Shown:
    """The maps of one head or mean, for all steps at once."""
    import torch

    from attention_core.experiments.compare.contributions import contributions
    from attention_core.experiments.compare.generated_tokens.trace import averaged
    from attention_core.experiments.compare.hide_keys import hide_keys

    trace = made.trace
    computed = averaged(trace.weights, *look.place)
    layer, head = look.place
    layers = slice(None) if layer is None else slice(layer, layer + 1)
    written = averaged(
        contributions(trace.weights[layers], trace.value_norms[layers]),
        None if layer is None else 0,
        head,
    )
    weights = computed
    if look.without_first:
        first = torch.zeros(computed.shape[-1], dtype=torch.bool)
        first[0] = True
        weights = hide_keys(computed, first, renormalise=True)
    return Shown(made, look, weights.numpy(), computed.numpy(), written.numpy())


def text(shown: Shown, step: int) -> None:
    """The tokens up to what step `step` (from 0) chose, shaded by its weights."""
    made, query = shown.made, shown.made.trace.query(step)
    row, written = shown.weights[query], shown.written[query]
    tokens = []
    for place, (piece, ends) in enumerate(zip(made.pieces, made.line_ends, strict=True)):
        known = place <= query
        detail = [f"writes a length of {written[place]:.4g}"] if known else []
        if place == query + 1:
            detail.append(f"chosen with probability {np.exp(made.trace.logprobs[step]):.4f}")
        tokens.append(
            Shaded(
                piece,
                float(row[place]) if known else None,
                ", ".join(detail),
                {query: "asks", query + 1: "chosen"}.get(place, ""),
                later=place > query + 1,
                line_after=ends,
            )
        )
    shaded(
        tokens,
        largest=shown.largest,
        square_root=shown.square_root,
        title=shown.title,
        hint="Point at a token, or focus the text and use the arrow keys, to read its weight.",
        key="generated_tokens_text",
    )


def sentence(shown: Shown, step: int) -> str:
    """What happened at this step, in words."""
    made, query = shown.made, shown.made.trace.query(step)
    row = shown.weights[query]
    best = int(row.argmax())
    chosen = np.exp(made.trace.logprobs[step])
    return (
        f"Step {step + 1}: “{isolated(made.labels[query])}” (position {query}) asks. Most weight, "
        f"{row[best]:.3f}, on “{isolated(made.labels[best])}” (position {best}). The model chose "
        f"“{isolated(made.labels[query + 1])}”, probability {chosen:.3f}."
    )


def row(shown: Shown, step: int) -> pd.DataFrame:
    """Every key of the run, `token` by `token`, with the step's `weight` on those there were."""
    query = shown.made.trace.query(step)
    there = np.arange(len(shown.weights)) <= query
    return pd.DataFrame(
        {
            "position": range(len(shown.weights)),
            "token": shown.made.labels[: len(shown.weights)],
            "weight": np.where(there, shown.weights[query].astype(float), np.nan),
        }
    )


def alternatives(made: Generation, step: int) -> pd.DataFrame:
    """The likeliest tokens at this step, and the chosen one if it is not among them."""
    trace = made.trace
    ids = trace.alternative_ids[step].tolist()
    logprobs = trace.alternative_logprobs[step].tolist()
    if trace.new[step] not in ids:
        ids.append(trace.new[step])
        logprobs.append(trace.logprobs[step])
    decode = models.get(made.settings.model).tokenizer.decode_bytes
    return pd.DataFrame(
        {
            "token": [printable(decode([i])) for i in ids],
            "probability": np.exp(logprobs),
            "chosen": ["✓" if i == trace.new[step] else "" for i in ids],
        }
    )


def every_step(shown: Shown) -> None:
    """The map of all rows that were computed, the prompt's first."""
    weights = Map(
        shown.weights,
        shown.made.labels[: len(shown.weights)],
        title=shown.title,
        causal=True,
        scale=ColourScale(shown.largest, shown.square_root),
    )
    heatmap(weights, key="generated_tokens_map")


def row_table(shown: Shown, step: int) -> pd.DataFrame:
    """The row of one step, key by key."""
    query = shown.made.trace.query(step)
    here = slice(0, query + 1)
    return pd.DataFrame(
        {
            "position": range(query + 1),
            "token": shown.made.labels[here],
            "weight": shown.weights[query, here],
            "weight as computed": shown.computed[query, here],
            "length written": shown.written[query, here],
        }
    )


def all_rows(shown: Shown) -> pd.DataFrame:
    """The rows of all steps below each other."""
    made = shown.made
    tables = []
    for step in range(made.trace.n_steps):
        table = row_table(shown, step).rename(columns={"position": "key position", "token": "key"})
        query = made.trace.query(step)
        about = {
            "step": step + 1,
            "query position": query,
            "query": made.labels[query],
            "chosen": made.labels[query + 1],
            "log-probability": made.trace.logprobs[step],
        }
        for place, (name, value) in enumerate(about.items()):
            table.insert(place, name, value)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def snippet(shown: Shown, step: int) -> str:
    """Python that computes the row of this step anew, from the repository's root."""
    made, settings = shown.made, shown.made.settings
    layer, head = shown.look.place
    lines = [
        "import pretrained",
        "from attention_core import Sampling",
        "from attention_core.experiments.compare.generated_tokens.trace import averaged, trace",
        "",
        f"model = pretrained.load({settings.model!a})",
        f"ids = model.tokenizer.encode({settings.prompt!a}).ids",
        f"sampling = Sampling(temperature={settings.temperature!r}, seed={settings.seed})",
        f"run = trace(model.core, ids, max_new_tokens={made.trace.n_steps}, sampling=sampling)",
        f"row = averaged(run.weights, {layer}, {head})[run.query({step})]",
    ]
    if shown.look.without_first:
        lines += ["row[0] = 0", "row = row / row.sum().clamp(min=1e-12)"]
    return "\n".join([*lines, "print(row)"])
