"""Data for the page "Against PyTorch"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import measure
from serving.cache import cached
from ui.canvas.tensors import Panel, Quantity
from ui.text.formatting import format_number, plural
from ui.widgets.questions import Question

if TYPE_CHECKING:
    from attention_core.costs.stopwatch import Samples

WIDTHS = (2, 6, 8, 12, 24, 48, 64, 96, 192, 384)
HEADS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96)
MAX_TOKENS, MAX_BATCH = 64, 4

TIME_WIDTHS = (192, 384, 576, 768)
TIME_TOKENS = (16, 32, 64, 128)
REPEATS = 7

# Rows and columns drawn of each matrix, from the first batch element.
WINDOW = 6


@dataclass(frozen=True)
class ComparisonSetup:
    """Sizes (C, H, T, B), seed of the weights and the input, mask and biases."""

    width: int
    heads: int
    tokens: int
    batch: int
    seed: int
    causal: bool
    bias: bool


@dataclass(frozen=True)
class ComparisonResults:
    """Everything the page shows for one setup.

    outputs, weights: the corners drawn. differences: one row per implementation.
    products, memory: tables of operator counts and of bytes kept.
    """

    outputs: tuple[Panel, ...]
    weights: tuple[Panel, ...]
    differences: pd.DataFrame
    weights_difference: float
    products: pd.DataFrame
    memory: pd.DataFrame
    scores_bytes: int


def divisors(width: int) -> list[int]:
    """The head counts in `HEADS` that divide a width."""
    return [n for n in HEADS if width % n == 0]


@cached(key=lambda setting: setting)
def compare_setting(setting: ComparisonSetup) -> ComparisonResults:
    """Compare all implementations: outputs, products and memory.

    Raises: ValueError if the heads don't divide the width.
    """
    from pages.learn.against_pytorch import experiment as against_pytorch

    ours = against_pytorch.make_attention(
        setting.width,
        setting.heads,
        setting.tokens,
        causal=setting.causal,
        qkv_bias=setting.bias,
        seed=setting.seed,
    )
    x = against_pytorch.random_input(
        setting.batch, setting.tokens, setting.width, seed=setting.seed
    )
    comparison = against_pytorch.compare(ours, x)
    modules = {kind: against_pytorch.variant(kind, ours) for kind in against_pytorch.KINDS}
    counts = {kind: against_pytorch.count_products(module, x) for kind, module in modules.items()}
    kept = {
        kind: against_pytorch.saved_for_backward(module, x, n_heads=setting.heads)
        for kind, module in modules.items()
    }
    products = [
        {
            "implementation": kind,
            "q, k, v + output": f"{against_pytorch.qkv_products(kind, setting.heads)} + 1",
            "counted": counts[kind].projections,
            "scores, sums": counts[kind].batched,
            "kernel calls": counts[kind].kernels,
        }
        for kind in against_pytorch.KINDS
    ]
    memory = [
        {
            "implementation": kind,
            "bytes kept": f"{kept[kind].total:,}",
            "of these in (T, T) tensors": _or_dash(kept[kind].square),
        }
        for kind in against_pytorch.KINDS
    ]
    return ComparisonResults(
        outputs=tuple(
            _window(name, comparison.outputs[kind][0].numpy(), ("token", "column"))
            for name, kind in (
                ("ours (weight splits)", against_pytorch.SPLIT),
                (against_pytorch.MODULE, against_pytorch.MODULE),
                ("with " + against_pytorch.SDPA, against_pytorch.SDPA),
            )
        ),
        weights=(
            _window("ours, mean over heads", comparison.our_weights[0].numpy(), ("query", "key")),
            _window(against_pytorch.MODULE, comparison.torch_weights[0].numpy(), ("query", "key")),
        ),
        differences=pd.DataFrame(
            [
                {
                    "implementation": kind,
                    "largest difference": format_number(comparison.difference(kind), ".1e"),
                }
                for kind in against_pytorch.KINDS
                if kind != against_pytorch.SPLIT
            ]
        ),
        weights_difference=comparison.weights_difference,
        products=pd.DataFrame(products),
        memory=pd.DataFrame(memory),
        scores_bytes=against_pytorch.scores_bytes(setting.batch, setting.heads, setting.tokens),
    )


def _or_dash(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _window(name: str, values: np.ndarray, axes: tuple[str, str]) -> Panel:
    """The first rows and columns of a matrix, with the shape of the whole matrix.

    Every cell has an identity, so pointing at it highlights the same cell in the other panels.
    """
    corner = values[:WINDOW, :WINDOW].copy()
    places = np.arange(corner.size).reshape(corner.shape)
    window = tuple(range(size) for size in corner.shape)
    quantity: Quantity = "weights" if axes[-1] == "key" else ""
    return Panel(
        name,
        corner,
        axes,
        cells=places,
        positions=window,
        whole=values.shape,
        quantity=quantity,
    )


@dataclass(frozen=True)
class HeadCountTimes:
    """Seconds by number of heads and implementation, and how they were measured."""

    width: int
    tokens: int
    repeats: int
    threads: int
    seconds: dict[int, dict[str, Samples]]

    @property
    def method_text(self) -> str:
        """The settings as text."""
        return (
            f"width {self.width}, {self.tokens} tokens, batch 1, causal, no gradients, "
            f"{self.repeats} repeats, {plural(self.threads, 'CPU thread')}"
        )

    @property
    def table(self) -> pd.DataFrame:
        """Median and range in milliseconds by head count, and the wrapper's slowdown."""
        from attention_core.costs.stopwatch import Samples, paired_ratio
        from pages.learn.against_pytorch import experiment as against_pytorch

        rows = []
        for heads, by_kind in self.seconds.items():
            ratio = paired_ratio(
                by_kind[against_pytorch.WRAPPER].values, by_kind[against_pytorch.SPLIT].values
            )
            # the most important columns come first because a narrow table scrolls
            row: dict[str, object] = {"heads": heads, "wrapper ÷ weight splits": f"{ratio:.1f}"}
            for kind, samples in by_kind.items():
                row[f"{kind}, ms"] = f"{Samples(tuple(s * 1e3 for s in samples.values)):.2f}"
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def rows(self) -> pd.DataFrame:
        """Every single measurement, for the download."""
        return pd.DataFrame(
            [
                {
                    "way": kind,
                    "heads": heads,
                    "repeat": number,
                    "milliseconds": value * 1e3,
                    "width": self.width,
                    "tokens": self.tokens,
                    "threads": self.threads,
                }
                for heads, by_kind in self.seconds.items()
                for kind, samples in by_kind.items()
                for number, value in enumerate(samples.values)
            ]
        )

    @property
    def medians(self) -> pd.DataFrame:
        """Chart data: `way`, `heads`, and `median`, `low`, `high` in milliseconds."""
        return pd.DataFrame(
            [
                {
                    "way": kind,
                    "heads": heads,
                    "median": samples.median * 1e3,
                    "low": samples.low * 1e3,
                    "high": samples.high * 1e3,
                }
                for heads, by_kind in self.seconds.items()
                for kind, samples in by_kind.items()
            ]
        )


@dataclass(frozen=True)
class SeriesRequest:
    """A request for a series of times: width, tokens, and the round of `measure`."""

    width: int
    tokens: int
    round_: int


FIRST = SeriesRequest(TIME_WIDTHS[0], TIME_TOKENS[1], measure.FIRST)
_FIRST_HEADS = (1, 8, 32, 96)


def request(width: int, tokens: int) -> SeriesRequest:
    """Request a new measurement."""
    return SeriesRequest(width, tokens, measure.new_round())


def series(
    request: SeriesRequest, progress: Callable[[str], object]
) -> measure.TimedResult[HeadCountTimes]:
    """Time every implementation at each head count, or return the cached result.

    `FIRST` uses only four head counts. progress: called with a message before each of them.
    """

    def make() -> HeadCountTimes:
        import torch

        from pages.learn.against_pytorch import experiment as against_pytorch

        heads = _FIRST_HEADS if request == FIRST else against_pytorch.SERIES_HEADS
        repeats = 3 if request == FIRST else REPEATS
        seconds = {}
        for number, n_heads in enumerate(heads, start=1):
            progress(f"Measuring {n_heads} heads, {number} of {len(heads)} …")
            seconds[n_heads] = against_pytorch.time_kinds(
                request.width, n_heads, request.tokens, repeats=repeats
            )
        return HeadCountTimes(
            request.width, request.tokens, repeats, torch.get_num_threads(), seconds
        )

    progress("Waiting for another measurement to finish …")
    return measure.cached_measurement(
        ("against_pytorch", request.width, request.tokens), request.round_, make
    )


@cache
def questions() -> tuple[Question, ...]:
    """Three questions with fixed sizes; the answers are counted and measured once."""
    from pages.learn.against_pytorch import experiment as against_pytorch

    heads, width, tokens = 96, 192, 128
    x = against_pytorch.random_input(1, tokens, width, seed=0)
    short = x[:, : tokens // 2]
    ours = against_pytorch.make_attention(width, heads, tokens, causal=True, qkv_bias=False, seed=0)
    counts = {
        kind: against_pytorch.count_products(against_pytorch.variant(kind, ours), short).projections
        - 1
        for kind in (against_pytorch.WRAPPER, against_pytorch.SPLIT)
    }

    def squares(kind: str) -> tuple[int, int]:
        module = against_pytorch.variant(kind, ours)
        first, second = (
            against_pytorch.saved_for_backward(module, part, n_heads=heads).square
            for part in (short, x)
        )
        return first or 0, second or 0

    before, after = squares(against_pytorch.SPLIT)
    growth = after // before
    kernel = max(squares(against_pytorch.SDPA))
    parameters = {
        n: sum(
            p.numel()
            for p in against_pytorch.make_attention(
                width, n, tokens, causal=True, qkv_bias=False, seed=0
            ).parameters()
        )
        for n in (1, heads)
    }
    ratio = parameters[heads] / parameters[1]
    return (
        Question(
            prompt=f"How many matrix products does the wrapper of {heads} heads need for its "
            "queries, keys and values?",
            right=f"{counts[against_pytorch.WRAPPER]}",
            wrong=tuple(str(n) for n in (counts[against_pytorch.SPLIT], heads)),
            explanation=f"The wrapper runs {counts[against_pytorch.WRAPPER]} products, 3 for each "
            f"head. With weight splits there are always {counts[against_pytorch.SPLIT]}, no "
            "matter how many heads you use.",
        ),
        Question(
            prompt="Our version keeps (T, T) tensors for the backward pass. How much larger do "
            "they "
            "get when the text becomes twice as long?",
            right=f"{growth} times",
            wrong=tuple(f"{n} times" for n in (2, 3, 8) if n != growth),
            explanation=f"They take {before:,} bytes at {tokens // 2} tokens and {after:,} at "
            f"{tokens}. PyTorch's kernel keeps {kernel} bytes of (T, T) tensors.",
        ),
        Question(
            prompt=f"The width stays at {width}. With weight splits, how many parameters do "
            f"{heads} "
            "heads have, compared with 1 head?",
            right="Just as many" if ratio == 1 else f"{ratio:g} times as many",
            wrong=(f"{heads} times as many", "3 times as many"),
            explanation=f"The layer has {parameters[1]:,} parameters with 1 head and "
            f"{parameters[heads]:,} with {heads}. Heads divide the width among themselves; they "
            "don't add to it.",
        ),
    )
