"""Scaling: logits through a softmax, q . k under four divisors, a real head at another scale."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ui import attention, models
from ui.bounded import BoundedCache
from ui.charts import SERIES, config, decades
from ui.controls import HeadChoice
from ui.limits import RUN_CACHE_BYTES
from ui.quiz import Question, nearest

if TYPE_CHECKING:
    from attention_core.scaling import ScaledScores

# The article's two examples.
ARTICLE = {"20, 21.5, 22": "20 21.5 22", "20, 21.5, 26": "20 21.5 26"}
MAX_LOGITS, LARGEST_LOGIT = 16, 1e6
TEMPERATURES = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]

D_KS = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256, 512, 1024]
N_DRAWS, N_TOKENS = 200, 32
# The course's own experiment: d_k, draws, tokens of each draw.
COURSE = (64, 1000, 10)

FACTORS = {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0,
           "2": 2.0, "4": 4.0, "8": 8.0, "16": 16.0}  # fmt: skip
KEPT, REMOVED, FACTOR = "as in the model", "removed", "times a factor"
SCALES = [KEPT, REMOVED, FACTOR]

ENTROPY, LARGEST = "entropy of a row", "largest weight of a row"
GRADIENT, MEDIAN = "gradient of the softmax, mean row", "gradient of the softmax, median row"
REACHES = "gradient that reaches q·k, median row"
MEASURES = [LARGEST, ENTROPY, GRADIENT, MEDIAN, REACHES]

# A dash for each colour where lines lie on each other.
_DASHES = [[1, 0], [1, 0], [7, 4], [2, 4]]

_sweeps: BoundedCache[dict[str, list[ScaledScores]]] = BoundedCache(64, lambda _: 1)


# --- one softmax ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Softmaxes:
    """The logits (n,) through three softmaxes (n,); `by_sum` is None where the sum is zero."""

    logits: np.ndarray
    temperature: float
    plain: np.ndarray
    tempered: np.ndarray
    by_sum: np.ndarray | None

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The softmaxes by the names they have on screen."""
        named = {"as they are": self.plain, f"÷ {self.temperature:g}": self.tempered}
        return named if self.by_sum is None else named | {"over their sum": self.by_sum}

    @property
    def table(self) -> pd.DataFrame:
        """One row a logit."""
        return pd.DataFrame({"logit": self.logits, **self.columns})


def parse(text: str) -> list[float]:
    """The logits that a visitor typed, between blanks, commas or semicolons.

    Raises: ValueError for fewer than 2 or more than `MAX_LOGITS`, and for what is no number.
    """
    words = re.split(r"[\s,;]+", text.strip(" \t\n,;[]"))
    if len(words) < 2 or len(words) > MAX_LOGITS:
        given = len(words) if words != [""] else 0
        raise ValueError(f"Type 2 to {MAX_LOGITS} numbers, like “20 21.5 22”; these are {given}.")
    return [_number(word) for word in words]


def _number(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise ValueError(
            f"“{word[:20]}” is not a number. Type numbers like “20 21.5 22”."
        ) from None
    if not abs(number) <= LARGEST_LOGIT:
        raise ValueError(
            f"“{word[:20]}” is out of range: use -{LARGEST_LOGIT:g} to {LARGEST_LOGIT:g}."
        )
    return number


def softmaxes(logits: list[float], temperature: float) -> Softmaxes:
    """The same logits plainly, at a temperature, and over their sum as in the article."""
    import torch

    from attention_core.scaling import softmax_at, softmax_of_shares

    values = torch.tensor(logits)
    divisible = float(values.sum()) != 0.0
    return Softmaxes(
        logits=values.numpy(),
        temperature=temperature,
        plain=softmax_at(values, 1.0).numpy(),
        tempered=softmax_at(values, temperature).numpy(),
        by_sum=softmax_of_shares(values).numpy() if divisible else None,
    )


def row_numbers(result: Softmaxes) -> pd.DataFrame:
    """Entropy, largest weight and gradient of each softmax, one row each."""
    import torch

    from attention_core.scaling import entropy, jacobian_norm, uniform_jacobian_norm

    rows = []
    for name, values in result.columns.items():
        weights = torch.from_numpy(values)
        left = float(jacobian_norm(weights)) / uniform_jacobian_norm(len(values))
        rows.append(
            {
                "": name,
                "largest weight": f"{values.max():.4f}",
                f"entropy (at most {math.log(len(values)):.3f})": f"{float(entropy(weights)):.4f}",
                "gradient, uniform = 1": f"{left:.3g}",
            }
        )
    return pd.DataFrame(rows)


def softmax_chart(result: Softmaxes, ink: str) -> dict[str, Any]:
    """Bars: one group a logit, one bar a softmax."""
    rows = [
        {"logit": f"{place}: {logit:g}", "scores": name, "weight": float(values[place])}
        for name, values in result.columns.items()
        for place, logit in enumerate(result.logits)
    ]
    names = list(result.columns)
    return {
        "height": 340,
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "logit",
                "type": "nominal",
                "sort": None,
                "title": "place: logit",
                "axis": {"labelAngle": 0 if len(result.logits) < 6 else -60},
            },
            "xOffset": {"field": "scores", "sort": names},
            "y": {
                "field": "weight",
                "type": "quantitative",
                "title": "weight",
                "scale": {"domain": [0, 1]},
            },
            "color": _colour("scores", names, "square"),
            "tooltip": [
                {"field": "scores"},
                {"field": "logit"},
                {"field": "weight", "format": ".6f"},
            ],
        },
        "config": config(ink),
    }


# --- q . k under four divisors -------------------------------------------------------------------


def sweep(seed: int) -> dict[str, list[ScaledScores]]:
    """All divisors at every d_k, from one draw of `N_DRAWS` Q and K; kept for all visitors."""
    from attention_core.scaling import scaling_sweep

    def make() -> dict[str, list[ScaledScores]]:
        return scaling_sweep(D_KS, n_draws=N_DRAWS, n_tokens=N_TOKENS, seed=seed)

    return _sweeps.get(("page", seed), make)


def course(seed: int) -> dict[str, ScaledScores]:
    """The course's experiment with a seed: its d_k, its number and size of draws."""
    from attention_core.scaling import scaling_sweep

    d_k, n_draws, n_tokens = COURSE

    def make() -> dict[str, list[ScaledScores]]:
        return scaling_sweep([d_k], n_draws=n_draws, n_tokens=n_tokens, seed=seed)

    return {name: found[0] for name, found in _sweeps.get(("course", seed), make).items()}


def at(seed: int, d_k: int) -> dict[str, ScaledScores]:
    """The sweep at one d_k."""
    return {name: found[D_KS.index(d_k)] for name, found in sweep(seed).items()}


def numbers(results: dict[str, ScaledScores]) -> pd.DataFrame:
    """One row a divisor: the variance against theory, and what the softmax makes of it."""
    return pd.DataFrame(
        [
            {
                "divided by": name,
                "variance": f"{found.variance:.4g}",
                "spread": f"{found.spread:.2g}",
                "theory": f"{found.theory:.4g}",
                "entropy": f"{found.entropy:.3f}",
                "largest weight": f"{found.largest:.3f}",
                "gradient, mean": f"{_measure(found, GRADIENT):.3g}",
                "gradient, median": f"{_measure(found, MEDIAN):.3g}",
                "reaching q·k": f"{_measure(found, REACHES):.3g}",
            }
            for name, found in results.items()
        ]
    )


def everything(seed: int) -> pd.DataFrame:
    """The whole sweep, unrounded: the twin of both charts."""
    return pd.DataFrame(
        [
            {
                "d_k": found.d_k,
                "divided by": name,
                "variance": found.variance,
                "spread": found.spread,
                "theory": found.theory,
                **{measure: _measure(found, measure) for measure in MEASURES},
                "draws": found.n_draws,
                "seed": seed,
            }
            for name, all_found in sweep(seed).items()
            for found in all_found
        ]
    )


def _measure(found: ScaledScores, measure: str) -> float:
    """A measure of the softmax's rows; gradients relative to the one of a uniform row."""
    from attention_core.scaling import uniform_jacobian_norm

    uniform = uniform_jacobian_norm(N_TOKENS)
    return {
        ENTROPY: found.entropy,
        LARGEST: found.largest,
        GRADIENT: found.jacobian / uniform,
        MEDIAN: found.jacobian_median / uniform,
        REACHES: found.jacobian_median / uniform / found.divisor,
    }[measure]


def variance_chart(seed: int, d_k: int, ink: str) -> dict[str, Any]:
    """Measured variances as points with their spread, theory as lines, both axes logarithmic."""
    rows = [
        {
            "d_k": found.d_k,
            "divided by": name,
            "measured": found.variance,
            "low": max(found.variance - found.spread, found.variance / 10),
            "high": found.variance + found.spread,
            "theory": found.theory,
        }
        for name, all_found in sweep(seed).items()
        for found in all_found
    ]
    y = {"type": "quantitative", "scale": {"type": "log"}, "title": "variance of the scores"}
    axis = {"format": "~g", "values": [1e-9, 1e-6, 1e-3, 1, 1e3]}
    layers: list[dict[str, Any]] = [
        {"mark": "line", "encoding": {"y": {**y, "field": "theory", "axis": axis}}},
        {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {"y": {**y, "field": "measured"}},
        },
    ]
    tooltip = [
        {"field": "divided by"},
        {"field": "d_k"},
        *({"field": name, "format": ".4~g"} for name in ("measured", "theory")),
    ]
    return _over_d_k(rows, layers, tooltip, d_k, ink)


def measure_chart(seed: int, d_k: int, measure: str, ink: str) -> dict[str, Any]:
    """One measure of the softmax's rows over d_k, a line for each divisor."""
    rows: list[dict[str, Any]] = [
        {"d_k": found.d_k, "divided by": name, "value": _measure(found, measure)}
        for name, all_found in sweep(seed).items()
        for found in all_found
    ]
    limits: dict[str, dict[str, Any]] = {
        ENTROPY: {"scale": {"domain": [0, math.log(N_TOKENS)], "nice": False}},
        LARGEST: {"scale": {"domain": [0, 1]}},
        GRADIENT: {"scale": {"domain": [0, 1.5]}},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": {
            ENTROPY: f"entropy in nats (log {N_TOKENS} is the top)",
            LARGEST: "largest weight",
        }.get(measure, "gradient, × uniform row"),
        **(limits.get(measure) or decades([row["value"] for row in rows])),
    }
    layers = [
        {
            "mark": {"type": "line", "point": {"filled": True, "size": 40}},
            "encoding": {"y": y, "strokeDash": _dash()},
        }
    ]
    tooltip = [
        {"field": "divided by"},
        {"field": "d_k"},
        {"field": "value", "title": measure, "format": ".4~g"},
    ]
    return _over_d_k(rows, layers, tooltip, d_k, ink)


def _over_d_k(
    rows: list[dict[str, Any]],
    layers: list[dict[str, Any]],
    tooltip: list[dict[str, str]],
    d_k: int,
    ink: str,
) -> dict[str, Any]:
    """Layers over a logarithmic d_k axis, the chosen d_k marked by a line across."""
    x = {
        "field": "d_k",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [D_KS[0], D_KS[-1]]},
        "axis": {"values": [1, 4, 16, 64, 256, 1024], "format": "d"},
        "title": "d_k, the size of a query and a key",
    }
    colour = _colour("divided by", list(_divisors()))
    marked = {
        "data": {"values": [{"d_k": d_k}]},
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": ink, "size": 1.5},
        "encoding": {"x": x},
    }
    drawn = [
        {**layer, "encoding": {"x": x, "color": colour, "tooltip": tooltip, **layer["encoding"]}}
        for layer in layers
    ]
    return {
        "height": 320,
        "data": {"values": rows},
        "layer": [marked, *drawn],
        "config": config(ink),
    }


def _divisors() -> list[str]:
    from attention_core.scaling import DIVISORS

    return list(DIVISORS)


def _colour(field: str, names: list[str], symbol: str = "stroke") -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": field,
        "scale": {"domain": names, "range": SERIES[: len(names)]},
        "legend": _legend(symbol),
    }


def _dash() -> dict[str, Any]:
    return {
        "field": "divided by",
        "type": "nominal",
        "title": "divided by",
        "scale": {"domain": _divisors(), "range": _DASHES},
        "legend": _legend("stroke"),
    }


def _legend(symbol: str) -> dict[str, Any]:
    # the same for colours and dashes, so that both become one legend
    return {"orient": "top", "columns": 4, "symbolType": symbol, "symbolStrokeWidth": 3}


# --- a real head ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Vectors:
    """Queries (layers, H, T, D) and keys (layers, H_kv, T, D) of a model on a text, float32."""

    q: np.ndarray
    k: np.ndarray
    labels: tuple[str, ...]
    causal: bool


@dataclass(frozen=True)
class RescaledHead:
    """A head's weights (T, T) at its own scale and at another one; `rows` holds the numbers."""

    labels: tuple[str, ...]
    causal: bool
    scales: tuple[float, float]
    original: np.ndarray
    changed: np.ndarray
    rows: pd.DataFrame
    summary: pd.DataFrame


_vectors: BoundedCache[_Vectors] = BoundedCache(
    RUN_CACHE_BYTES // 2, lambda kept: kept.q.nbytes + kept.k.nbytes
)


def rescaled_head(choice: HeadChoice, text: str, how: str, factor: str) -> RescaledHead:
    """The head of the model on the text, its scale removed, multiplied, or as it was.

    Raises: what `ui.attention.recorded` raises.
    """
    import torch

    from attention_core.scaling import weights_at_scale

    found = _vectors_of(choice.entry.spec.name, text)
    group = found.q.shape[1] // found.k.shape[1]
    q = torch.from_numpy(found.q[choice.layer, choice.head])
    k = torch.from_numpy(found.k[choice.layer, choice.head // group])
    own = 1.0 / math.sqrt(q.shape[-1])
    scale = {KEPT: own, REMOVED: 1.0, FACTOR: own * FACTORS[factor]}[how]
    original, changed = (
        weights_at_scale(q, k, size, causal=found.causal).numpy() for size in (own, scale)
    )
    rows = _rows(found, original, changed)
    return RescaledHead(
        found.labels,
        found.causal,
        (own, scale),
        original,
        changed,
        rows,
        _summary(rows, own, scale),
    )


def _vectors_of(name: str, text: str) -> _Vectors:
    def make() -> _Vectors:
        import torch

        model, tokens, records = attention.recorded(name, text)
        q, k = (
            torch.stack([getattr(record, part)[0] for record in records]).float().cpu().numpy()
            for part in "qk"
        )
        return _Vectors(q, k, tuple(tokens.labels), model.core.config.causal)

    return _vectors.get((*models.key(name), text), make)


def _rows(found: _Vectors, original: np.ndarray, changed: np.ndarray) -> pd.DataFrame:
    """One row a query: how many keys it sees, and entropy, largest weight, gradient of both."""
    import torch

    from attention_core.scaling import entropy, jacobian_norm

    seen = (
        np.arange(1, len(original) + 1) if found.causal else np.full(len(original), len(original))
    )
    uniform = np.sqrt(seen - 1) / seen
    columns: dict[str, Any] = {
        "position": np.arange(len(original)),
        "query": found.labels,
        "keys": seen,
        "log keys": np.log(seen),
    }
    for name, values in (("original", original), ("changed", changed)):
        weights = torch.from_numpy(values)
        columns[f"{name}: entropy"] = entropy(weights).numpy()
        columns[f"{name}: largest"] = values.max(axis=-1)
        columns[f"{name}: at key"] = [found.labels[place] for place in values.argmax(axis=-1)]
        gradient = jacobian_norm(weights).numpy()
        # a single key gets all the weight whatever its score: there is no gradient to compare with
        columns[f"{name}: gradient"] = np.divide(
            gradient, uniform, out=np.full(len(gradient), np.nan), where=uniform > 0
        )
    return pd.DataFrame(columns)


def _summary(rows: pd.DataFrame, own: float, scale: float) -> pd.DataFrame:
    """Means over the rows that see at least two keys."""
    counted = rows[rows["keys"] > 1]
    return pd.DataFrame(
        [
            {
                "scale": f"{name}: × {size:.4g}",
                "entropy": _or_dash(counted[f"{name}: entropy"].mean()),
                "log keys": _or_dash(counted["log keys"].mean()),
                "largest weight": _or_dash(counted[f"{name}: largest"].mean()),
                "gradient, uniform = 1": _or_dash(counted[f"{name}: gradient"].mean()),
            }
            for name, size in (("original", own), ("changed", scale))
        ]
    )


def _or_dash(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:.3f}"


# --- questions -----------------------------------------------------------------------------------


def questions() -> list[Question]:
    """Three questions; what is right is computed from the same functions as the page."""
    logits = parse(ARTICLE["20, 21.5, 22"])
    before = softmaxes(logits, 1.0).plain
    after = softmaxes([logit + 100 for logit in logits], 1.0).plain
    move = float(after.max() - before.max())
    moves = ["it grows", "it stays the same", "it shrinks"]
    moved = moves[1] if abs(move) < 1e-6 else moves[0 if move > 0 else 2]

    wide = at(0, 256)
    most = math.log(N_TOKENS)
    flat = nearest(
        wide["d_k"].entropy,
        {"near 0": 0.0, "near half of log 32": most / 2, "near log 32": most},
    )
    sizes = {"about the same": 1.0, "about a third": 1 / 3, "less than a hundredth": 1e-3}
    large = at(0, 1024)["nothing"]
    left = nearest(math.log(_measure(large, MEDIAN)), {k: math.log(v) for k, v in sizes.items()})
    return [
        Question(
            ask="100 is added to all three logits 20, 21.5 and 22. What happens to the largest "
            f"weight, {before.max():.4f}?",
            right=moved,
            wrong=tuple(name for name in moves if name != moved),
            because=f"It is {after.max():.4f} afterwards: only differences between logits count. "
            "What saturates a softmax is their spread, not their size.",
        ),
        Question(
            ask="q·k over 256 numbers is divided by 256 instead of √256 = 16. Where does the "
            f"entropy of a row over {N_TOKENS} keys end up?",
            right=flat[0],
            wrong=flat[1],
            because=f"{wide['d_k'].entropy:.3f} of log {N_TOKENS} = {most:.3f} nats; "
            f"√d_k gives {wide['√d_k'].entropy:.3f}. The scores became too small to choose with.",
        ),
        Question(
            ask="d_k is 1024 and nothing divides q·k. How much of a uniform row's softmax "
            "gradient does the median row have?",
            right=left[0],
            wrong=left[1],
            because=f"{_measure(large, MEDIAN):.2g} of it; the mean row has "
            f"{_measure(large, GRADIENT):.2f}. The largest weight is {large.largest:.3f} on "
            "average: the rows are saturated.",
        ),
    ]
