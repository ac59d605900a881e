"""What the page "Against PyTorch" shows: our attention beside PyTorch's, with the same weights."""

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
from ui.text.number_text import counted, written
from ui.widgets.questions import Question

if TYPE_CHECKING:
    from attention_core.costs.stopwatch import Samples

WIDTHS = (2, 6, 8, 12, 24, 48, 64, 96, 192, 384)
HEADS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96)
MAX_TOKENS, MAX_BATCH = 64, 4

TIME_WIDTHS = (192, 384, 576, 768)
TIME_TOKENS = (16, 32, 64, 128)
REPEATS = 7

# Rows and columns of the windows that are drawn, from the first batch element.
WINDOW = 6


@dataclass(frozen=True)
class ComparisonSetup:
    """What is compared: C, H, T, B, the seed of weights and input, the mask, the biases."""

    width: int
    heads: int
    tokens: int
    batch: int
    seed: int
    causal: bool
    bias: bool


@dataclass(frozen=True)
class ComparisonResults:
    """Everything the page says about one setting.

    outputs, weights: the windows that are drawn. differences: one row a kind. products, memory:
    tables of what was counted and measured.
    """

    outputs: tuple[Panel, ...]
    weights: tuple[Panel, ...]
    differences: pd.DataFrame
    weights_difference: float
    products: pd.DataFrame
    memory: pd.DataFrame
    scores_bytes: int


def divisors(width: int) -> list[int]:
    """The heads on offer that divide a width."""
    return [n for n in HEADS if width % n == 0]


@cached(key=lambda setting: setting)
def side(setting: ComparisonSetup) -> ComparisonResults:
    """Outputs, differences, products and memory. Raises ValueError for heads that do not fit."""
    from pages.learn.against_pytorch import experiment as against_pytorch

    ours = against_pytorch.make(
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
    counted = {kind: against_pytorch.count_products(module, x) for kind, module in modules.items()}
    kept = {
        kind: against_pytorch.kept_for_backward(module, x, n_heads=setting.heads)
        for kind, module in modules.items()
    }
    products = [
        {
            "way": kind,
            "q, k, v + output": f"{against_pytorch.qkv_products(kind, setting.heads)} + 1",
            "counted": counted[kind].projections,
            "scores, sums": counted[kind].batched,
            "kernel calls": counted[kind].kernels,
        }
        for kind in against_pytorch.KINDS
    ]
    memory = [
        {
            "way": kind,
            "kept, bytes": f"{kept[kind].total:,}",
            "of it (T, T), bytes": _or_dash(kept[kind].square),
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
                    "way": kind,
                    "largest difference": written(comparison.difference(kind), ".1e"),
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
    return "cannot be told" if count is None else f"{count:,}"


def _window(name: str, values: np.ndarray, axes: tuple[str, str]) -> Panel:
    """The first rows and columns of a matrix, under the whole one's shape.

    Its cells carry their place, so that the same place lights up in the panels beside it.
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
    """Seconds by kind and number of heads, and how they were measured."""

    width: int
    tokens: int
    repeats: int
    threads: int
    seconds: dict[int, dict[str, Samples]]

    @property
    def how(self) -> str:
        """The settings in words."""
        return (
            f"width {self.width}, {self.tokens} tokens, batch 1, causal, no gradients, "
            f"{self.repeats} repeats, {counted(self.threads, 'CPU thread')}"
        )

    @property
    def table(self) -> pd.DataFrame:
        """Milliseconds, median and range, one row a number of heads, and the wrapper's ratio."""
        from attention_core.costs.stopwatch import Samples, paired_ratio
        from pages.learn.against_pytorch import experiment as against_pytorch

        rows = []
        for heads, by_kind in self.seconds.items():
            ratio = paired_ratio(
                by_kind[against_pytorch.WRAPPER].values, by_kind[against_pytorch.SPLIT].values
            )
            # what is to be read stands first: a narrow table scrolls
            row: dict[str, object] = {"heads": heads, "wrapper ÷ weight splits": f"{ratio:.1f}"}
            for kind, samples in by_kind.items():
                row[f"{kind}, ms"] = f"{Samples(tuple(s * 1e3 for s in samples.values)):.2f}"
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def rows(self) -> pd.DataFrame:
        """Every single measurement: the data to take away."""
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
        """The rows of the chart: `way`, `heads`, and `median`, `low`, `high` in milliseconds."""
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
    """A series of times: its width and tokens, and the round of `measure` it belongs to."""

    width: int
    tokens: int
    round_: int


FIRST = SeriesRequest(TIME_WIDTHS[0], TIME_TOKENS[1], measure.FIRST)
_FIRST_HEADS = (1, 8, 32, 96)


def request(width: int, tokens: int) -> SeriesRequest:
    """A series that is measured anew."""
    return SeriesRequest(width, tokens, measure.fresh())


def series(
    request: SeriesRequest, progress: Callable[[str], object]
) -> measure.TimedResult[HeadCountTimes]:
    """Measure all heads of the series, or take the kept result; `FIRST` takes only four of them.

    progress: called with a sentence before each number of heads.
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

    progress("Waiting for another measurement to end …")
    return measure.kept(("against_pytorch", request.width, request.tokens), request.round_, make)


@cache
def questions() -> tuple[Question, ...]:
    """Three questions at sizes of their own, answered by counting and measuring once."""
    from pages.learn.against_pytorch import experiment as against_pytorch

    heads, width, tokens = 96, 192, 128
    x = against_pytorch.random_input(1, tokens, width, seed=0)
    short = x[:, : tokens // 2]
    ours = against_pytorch.make(width, heads, tokens, causal=True, qkv_bias=False, seed=0)
    counted = {
        kind: against_pytorch.count_products(against_pytorch.variant(kind, ours), short).projections
        - 1
        for kind in (against_pytorch.WRAPPER, against_pytorch.SPLIT)
    }

    def squares(kind: str) -> tuple[int, int]:
        module = against_pytorch.variant(kind, ours)
        first, second = (
            against_pytorch.kept_for_backward(module, part, n_heads=heads).square
            for part in (short, x)
        )
        return first or 0, second or 0

    before, after = squares(against_pytorch.SPLIT)
    growth = after // before
    kernel = max(squares(against_pytorch.SDPA))
    parameters = {
        n: sum(
            p.numel()
            for p in against_pytorch.make(
                width, n, tokens, causal=True, qkv_bias=False, seed=0
            ).parameters()
        )
        for n in (1, heads)
    }
    ratio = parameters[heads] / parameters[1]
    return (
        Question(
            ask=f"How many matrix products does the wrapper of {heads} heads need for its "
            "queries, keys and values?",
            right=f"{counted[against_pytorch.WRAPPER]}",
            wrong=tuple(str(n) for n in (counted[against_pytorch.SPLIT], heads)),
            because=f"Counted operator by operator: {counted[against_pytorch.WRAPPER]}, which is 3 "
            f"for each head. With weight splits it is {counted[against_pytorch.SPLIT]}, "
            "however many heads there are.",
        ),
        Question(
            ask="The text becomes twice as long. How do the (T, T) tensors grow that our version "
            "keeps for the backward pass?",
            right=f"{growth} times",
            wrong=tuple(f"{n} times" for n in (2, 3, 8) if n != growth),
            because=f"Measured: {before:,} bytes at {tokens // 2} tokens, {after:,} at {tokens}. "
            f"The kernel kept {kernel} bytes of that kind.",
        ),
        Question(
            ask=f"The width stays {width}. How many more parameters do {heads} heads have than 1, "
            "with weight splits?",
            right="As many as before" if ratio == 1 else f"{ratio:g} times as many",
            wrong=(f"{heads} times as many", "3 times as many"),
            because=f"Counted: {parameters[1]:,} with 1 head, {parameters[heads]:,} with {heads}. "
            "Heads share out the width, they do not add to it.",
        ),
    )
