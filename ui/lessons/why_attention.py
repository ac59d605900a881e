"""Why attention: what reaches the last vector of a GRU and of attention, and in what time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ui import measure
from ui.bounded import BoundedCache
from ui.charts import SERIES, VERMILLION, config, decades
from ui.limits import MAX_WORDS, OverLimit, check_text
from ui.pictures import isolated
from ui.quiz import Question, nearest

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.timing import Samples

GRU, ATTENTION = "GRU, last state", "attention, last context"
PLAIN, TRAINABLE = "dot products alone (no weights)", "SelfAttentionV2 (random weights)"
LAYERS = [TRAINABLE, PLAIN]

WIDTHS = [2, 4, 8, 16, 32]
STATES = [2, 4, 8, 16, 32, 64]
MAX_HOLD, MAX_SEED = 6.0, 999
LENGTHS = [1, 2, 4, 8, 16, 32, 64]
# For the reader: positions of a sequence, sequences drawn.
READ_TOKENS, READ_SEQUENCES = 16, 3000

FEW, MANY = (8, 32, 128, 512), (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
MAX_WORDS_ON_AXIS = 20
TIME_WIDTH, TIME_SEED, RATIO_AT = 64, 0, 512


@dataclass(frozen=True)
class Setting:
    """What the page is set to: d numbers a token, h numbers of the state and of a context."""

    words: tuple[str, ...]
    notebook: bool
    width: int
    state: int
    hold: float
    layer: str
    seed: int


@dataclass(frozen=True)
class Reach:
    """What reaches the last vectors, token by token; every array is (T,).

    gru, attention: the norm of the gradient. weights: the attention weights of the last token.
    numbers: of the sentence, of the state. size: numbers in a context.
    """

    words: tuple[str, ...]
    gru: np.ndarray
    attention: np.ndarray
    gru_share: np.ndarray
    attention_share: np.ndarray
    weights: np.ndarray
    numbers: tuple[int, int]

    @property
    def table(self) -> pd.DataFrame:
        """One row a token."""
        return pd.DataFrame(
            {
                "position": np.arange(len(self.words)),
                "word": self.words,
                "GRU: gradient": self.gru,
                "GRU: × equal share": self.gru_share,
                "attention: gradient": self.attention,
                "attention: × equal share": self.attention_share,
                "attention: weight": self.weights,
            }
        )


_reaches: BoundedCache[Reach] = BoundedCache(64, lambda _: 1)  # a few kilobytes each
_growths: BoundedCache[pd.DataFrame] = BoundedCache(64, lambda _: 1)
_readings: BoundedCache[np.ndarray] = BoundedCache(64, lambda _: 1)


def words_of(text: str) -> tuple[str, ...]:
    """The words between blanks. Raises: OverLimit for too many, ValueError for none."""
    check_text(text)
    words = tuple(text.split())
    if not words:
        raise ValueError("There is no word in this text: type one or more.")
    if len(words) > MAX_WORDS:
        raise OverLimit(
            f"The text is {len(words)} words long, {len(words) - MAX_WORDS} over the limit of "
            f"{MAX_WORDS}. Shorten it; what you typed is still in the box."
        )
    return words


def setting(
    text: str, *, notebook: bool, width: int, state: int, hold: float, layer: str, seed: int
) -> Setting:
    """The setting of the page; the notebook's sentence brings its own vectors of three numbers.

    Raises: as `words_of`.
    """
    if notebook:
        from attention_core.examples import JOURNEY

        width = JOURNEY.embeddings.shape[1]
        return Setting(JOURNEY.tokens, True, width, state, hold, layer, seed)
    return Setting(words_of(text), False, width, state, hold, layer, seed)


def reach(asked: Setting) -> Reach:
    """Gradients of the last state and the last context with respect to every token."""
    return _reaches.get(asked, lambda: _reach(asked))


def _reach(asked: Setting) -> Reach:
    from attention_core.bottleneck import against_equal_share, influence, last_context

    x = _vectors(asked)
    (gru, state), (attention, size) = _networks(asked)
    from_gru, from_attention = influence(gru, x, state), influence(attention, x, size)
    return Reach(
        words=asked.words,
        gru=from_gru.numpy(),
        attention=from_attention.numpy(),
        gru_share=against_equal_share(from_gru).numpy(),
        attention_share=against_equal_share(from_attention).numpy(),
        weights=last_context(x[None], _layer(asked))[1][0].numpy(),
        numbers=(x.numel(), gru(x[None]).numel()),
    )


def growth(asked: Setting) -> pd.DataFrame:
    """Token 0's share of the influence while the sentence, repeated, grows to 64 tokens."""

    def make() -> pd.DataFrame:
        from attention_core.bottleneck import first_token_shares

        x = _vectors(asked)
        x = x.repeat(-(-LENGTHS[-1] // len(x)), 1)[: LENGTHS[-1]]
        networks = _networks(asked)
        return pd.DataFrame(
            {
                "tokens": LENGTHS,
                **{
                    name: first_token_shares(last, x, size, LENGTHS).numpy()
                    for name, (last, size) in zip((GRU, ATTENTION), networks, strict=True)
                },
            }
        )

    return _growths.get(asked, make)


def reading(width: int, state: int, hold: float, seed: int) -> np.ndarray:
    """How much of each of `READ_TOKENS` tokens a linear reader finds in the last state: (T,)."""

    def make() -> np.ndarray:
        from attention_core.bottleneck import encoder, recoverable

        gru = encoder(width, state, seed, hold=hold)
        return recoverable(gru, READ_TOKENS, n_sequences=READ_SEQUENCES, seed=seed).numpy()

    return _readings.get((width, state, hold, seed), make)


def recovered(found: np.ndarray, width: int) -> float:
    """Dimensions of the sentence that the reader gets back, of READ_TOKENS * width."""
    return float(found.clip(min=0.0).sum() * width)


def _vectors(asked: Setting) -> Tensor:
    """(T, d), float64."""
    from attention_core.bottleneck import word_vectors
    from attention_core.examples import JOURNEY

    if asked.notebook:
        return JOURNEY.embeddings.double()
    return word_vectors(asked.words, asked.width, asked.seed).double()


def _layer(asked: Setting) -> Any:
    from attention_core.bottleneck import attention_layer

    if asked.layer == PLAIN:
        return None
    return attention_layer(asked.width, asked.state, asked.seed).double()


def _networks(asked: Setting) -> list[tuple[Callable[[Tensor], Tensor], int]]:
    """For the GRU and for attention: copies (n, T, d) -> last vectors (n, size), and that size."""
    from attention_core.bottleneck import encoder, last_context, last_state

    gru = encoder(asked.width, asked.state, asked.seed, hold=asked.hold).double()
    layer = _layer(asked)

    def context(copies: Tensor) -> Tensor:
        return last_context(copies, layer)[0]

    size = asked.width if layer is None else asked.state
    return [(partial(last_state, gru), asked.state), (context, size)]


# --- charts --------------------------------------------------------------------------------------


def reach_chart(found: Reach, ink: str) -> dict[str, Any]:
    """The share of every position, a line for each network, on a logarithmic axis."""
    few = len(found.words) <= MAX_WORDS_ON_AXIS
    rows = [
        {
            "token": f"{place} {isolated(word[:12])}" if few else str(place),
            "word": word,
            "network": name,
            "share": float(shares[place]),
        }
        for name, shares in ((GRU, found.gru_share), (ATTENTION, found.attention_share))
        for place, word in enumerate(found.words)
    ]
    x = {
        "field": "token",
        "type": "ordinal",
        "sort": None,
        "title": "position of the word (the last one is read)",
        "axis": {"labelAngle": -60 if few else 0, "labelOverlap": not few},
    }
    tooltip = [{"field": "token"}, {"field": "word"}, {"field": "network"}]
    return _shares(rows, x, tooltip, ink)


def growth_chart(found: pd.DataFrame, ink: str) -> dict[str, Any]:
    """The share of token 0 over the length of the sentence."""
    rows = [
        {"tokens": int(row["tokens"]), "network": name, "share": float(row[name])}
        for name in (GRU, ATTENTION)
        for _, row in found.iterrows()
    ]
    x = {
        "field": "tokens",
        "type": "quantitative",
        "title": "tokens in the sentence",
        "scale": {"type": "log", "base": 2, "domain": [LENGTHS[0], LENGTHS[-1]]},
        "axis": {"values": LENGTHS, "format": "d"},
    }
    return _shares(rows, x, [{"field": "tokens"}, {"field": "network"}], ink)


def _shares(
    rows: list[dict[str, Any]], x: dict[str, Any], tooltip: list[dict[str, Any]], ink: str
) -> dict[str, Any]:
    return {
        "height": 320,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [3, 3], "color": ink},
                "data": {"values": [{"share": 1}]},
                "encoding": {"y": {"field": "share", "type": "quantitative"}},
            },
            {
                "mark": {"type": "line", "point": {"filled": True, "size": 45}},
                "encoding": {
                    "x": x,
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "title": "influence, × an equal share",
                        **decades([row["share"] for row in rows]),
                    },
                    "color": _colour("network", [GRU, ATTENTION]),
                    "tooltip": [*tooltip, {"field": "share", "format": ".4~g"}],
                },
            },
        ],
        "config": config(ink, labelLimit=300),
    }


def reading_chart(found: np.ndarray, ink: str) -> dict[str, Any]:
    """Bars: how much of each token is read back."""
    return {
        "height": 260,
        "data": {
            "values": [{"place": place, "found": float(part)} for place, part in enumerate(found)]
        },
        "mark": {"type": "bar", "color": VERMILLION},
        "encoding": {
            "x": {
                "field": "place",
                "type": "ordinal",
                "title": f"position of the token, 0 to {READ_TOKENS - 1}",
                "axis": {"labelAngle": 0},
            },
            "y": {
                "field": "found",
                "type": "quantitative",
                "title": "part that is read back",
                "scale": {"domain": [0, 1], "clamp": True},
            },
            "tooltip": [{"field": "place"}, {"field": "found", "format": ".3f"}],
        },
        "config": config(ink, labelLimit=300),
    }


def _colour(field: str, names: list[str]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": SERIES[: len(names)]},
        "legend": {"orient": "top", "symbolType": "stroke", "symbolStrokeWidth": 3, "columns": 2},
    }


# --- time ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    """Seconds of every run at every length: `seconds[name][length]`; on which processor."""

    seconds: dict[str, dict[int, Samples]]
    ratio: Samples  # the loop over attention at `RATIO_AT` tokens
    lengths: tuple[int, ...]
    repeats: int
    threads: int

    @property
    def table(self) -> pd.DataFrame:
        """One row a length: steps that wait for each other, scores, milliseconds."""
        return pd.DataFrame(
            [
                {
                    "tokens": length,
                    "steps one by one": length,
                    "scores of attention": length**2,
                    **{f"{n}, ms": f"{_ms(all_[length])}" for n, all_ in self.seconds.items()},
                }
                for length in self.lengths
            ]
        )


def times(round_: int) -> measure.Measured[Times]:
    """Measure the three ways at all lengths, or take the kept result; `FIRST` takes short ones."""

    def make() -> Times:
        import torch

        from attention_core.bottleneck import sequence_runs
        from attention_core.timing import Samples, interleave, paired_ratio, seconds_of

        lengths, repeats = (FEW, 5) if round_ == measure.FIRST else (MANY, 7)
        seconds: dict[str, dict[int, Samples]] = {}
        for length in lengths:
            runs = sequence_runs(length, TIME_WIDTH, TIME_SEED)
            timed = {name: partial(seconds_of, run) for name, run in runs.items()}
            with torch.inference_mode():
                found = interleave(timed, repeats=repeats)
            for name, values in found.items():
                seconds.setdefault(name, {})[length] = Samples(tuple(values))
            if length == RATIO_AT:
                loop, _, attention = found.values()
                ratio = paired_ratio(loop, attention)
        return Times(seconds, ratio, lengths, repeats, torch.get_num_threads())

    return measure.kept(("why_attention",), round_, make)


def times_chart(found: Times, ink: str) -> dict[str, Any]:
    """Milliseconds over the length, both axes logarithmic, with the range of the repeats."""
    rows = [
        {
            "tokens": length,
            "run": name,
            "ms": samples.median * 1e3,
            "low": samples.low * 1e3,
            "high": samples.high * 1e3,
        }
        for name, by_length in found.seconds.items()
        for length, samples in by_length.items()
    ]
    y = {
        "type": "quantitative",
        "title": "milliseconds (median and range)",
        **decades(
            [end for all_ in found.seconds.values() for s in all_.values() for end in _range_ms(s)]
        ),
    }
    common = {
        "x": {
            "field": "tokens",
            "type": "quantitative",
            "title": "tokens in the sentence",
            "scale": {"type": "log", "base": 2, "domain": [FEW[0], MANY[-1]]},
            "axis": {"values": list(MANY), "format": "d"},
        },
        "color": _colour("run", list(found.seconds)),
        "tooltip": [
            {"field": "run"},
            {"field": "tokens"},
            *({"field": name, "format": ".3~g"} for name in ("ms", "low", "high")),
        ],
    }
    return {
        "height": 320,
        "data": {"values": rows},
        "encoding": common,
        "layer": [
            {
                "mark": {"type": "line", "point": {"filled": True, "size": 45}},
                "encoding": {"y": {**y, "field": "ms"}},
            },
            {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        ],
        "config": config(ink, labelLimit=300),
    }


def _range_ms(samples: Samples) -> tuple[float, float]:
    return samples.low * 1e3, samples.high * 1e3


def _ms(samples: Samples) -> str:
    return f"{samples.median * 1e3:.3g} ({samples.low * 1e3:.3g}..{samples.high * 1e3:.3g})"


# --- questions -----------------------------------------------------------------------------------


def questions() -> list[Question]:
    """Three questions; what is right is computed from the same functions as the page."""
    short, long = (
        reach(_made_up(length, hold=0.0)).numbers for length in (8, 64)
    )  # (sentence, state)
    sizes = {"they become 8 times as many": 8.0, "they stay as many": 1.0, "they double": 2.0}
    grown = nearest(long[1] / short[1], sizes)

    shares = growth(_made_up(64, hold=0.0))
    left = float(shares[GRU][LENGTHS.index(32)])
    parts = {"about as much": 1.0, "about a tenth of it": 0.1, "less than a thousandth of it": 1e-5}
    faded = nearest(np.log(left), {name: float(np.log(part)) for name, part in parts.items()})

    held = float(growth(_made_up(64, hold=5.0))[GRU][LENGTHS.index(32)])
    before, after = (recovered(reading(16, 32, hold, 0), 16) for hold in (0.0, 5.0))
    changes = {"more": 2.0, "about as many": 1.0, "fewer": 0.5}
    change = nearest(
        np.log(after / before), {name: float(np.log(c)) for name, c in changes.items()}
    )
    return [
        Question(
            ask="A sentence grows from 8 to 64 tokens. What becomes of the numbers that the GRU's "
            "decoder is given?",
            right=grown[0],
            wrong=grown[1],
            because=f"{short[0]} numbers of the sentence went into {short[1]}; now {long[0]} "
            f"go into {long[1]}.",
        ),
        Question(
            ask="In an untrained GRU with 32 tokens, how much influence on the last state does "
            "token 0 have, compared with an equal share?",
            right=faded[0],
            wrong=faded[1],
            because=f"It has {left:.1e} of an equal share; attention gives it "
            f"{float(shares[ATTENTION][LENGTHS.index(32)]):.2f}.",
        ),
        Question(
            ask=f"Hold = 5 lifts that share to {held:.2f}. How many dimensions of the sentence "
            "does a linear reader recover from the state now?",
            right=change[0],
            wrong=change[1],
            because=f"{after:.1f} now, {before:.1f} before, of a state of 32 numbers. What keeps "
            "the old lets in little of the new: an equal share of almost nothing.",
        ),
    ]


def _made_up(n_tokens: int, *, hold: float) -> Setting:
    words: Sequence[str] = [f"word{place}" for place in range(n_tokens)]
    return Setting(tuple(words), False, 16, 32, hold, TRAINABLE, 0)
