"""Training histories of our own models, which show how their heads developed.

`python -m training.history` writes a small file per model. It contains the attention weights of
every head on a few texts, scores of the heads, and the loss, at stored steps that get farther
apart.
Letters: N stored steps, L layers, H heads of a layer, T tokens of a text, M points of the curve.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pretrained.sources import TRAINED_HERE

NAMES = ("gpt2-novels", "bert-novels")
FOLDER = TRAINED_HERE
FILE = "history.npz"

# Names of the statistics in attention_core/analysis/head_statistics.py: for weights on a text, and
# for weights on a repeated sequence of random words.
TEXT_SCORES = ("previous", "next", "first", "same")
REPEATED_WORD_SCORES = ("induction", "duplicate")

LEVELS = 255  # a weight is stored as round(LEVELS * sqrt(weight / largest weight of the head))
CONTEXTS = (40, 200, 400)  # numbers of preceding tokens for which the loss is stored, ±20
LOSSES = ("held_out", *(f"after_{before}" for before in CONTEXTS))
CURVE = ("step", "train_loss", "held_out_loss")
FEW, MANY = CONTEXTS[:2]  # not 400: training only reads texts that long near its end
MARGIN = 0.1  # nats by which more context must lower the loss to count as learning from context


@dataclass(frozen=True, eq=False)
class Probe:
    """A text that the model read at every stored step.

    title: a short description. ids: (T). labels: one per token, unique. codes (N, L, H, T, T) of
    uint8 and largest (N, L, H): the encoded weights, see `weights`. scores (N, 4, L, H): the
    statistics `TEXT_SCORES`, computed before the weights were rounded; NaN if a statistic doesn't
    apply to the text or the model.
    """

    title: str
    text: str
    ids: np.ndarray
    labels: tuple[str, ...]
    codes: np.ndarray
    largest: np.ndarray
    scores: np.ndarray

    def weights(self, number: int) -> np.ndarray:
        """All heads' weights at the stored step with this index, (L, H, T, T), float32."""
        shares = self.codes[number].astype(np.float32) / LEVELS
        weights: np.ndarray = self.largest[number][..., None, None] * shares**2
        return weights

    @cached_property
    def error(self) -> float:
        """The largest possible difference between a weight and its stored value."""
        return float(self.largest.max()) * (LEVELS - 0.25) / LEVELS**2


@dataclass(frozen=True, eq=False)
class History:
    """The training of one model.

    steps, tokens (N): training steps and trained tokens at each stored step. text_lengths (K, 2):
    steps at which the text length changed, and the new length in tokens. repeated_scores (N, 2, L,
    H): the statistics `REPEATED_WORD_SCORES`. losses: `LOSSES` at each stored step, in nats per
    token, on held-out books: for all predicted tokens in texts of the final length, and for the
    same tokens after about 40, 200 and 400 preceding tokens (NaN for an encoder, and before
    training reached texts of that length). curve: columns of the training curve, (M) each;
    `held_out_loss` is NaN at steps where it wasn't measured.
    """

    name: str
    causal: bool
    steps: np.ndarray
    tokens: np.ndarray
    text_lengths: np.ndarray
    probes: tuple[Probe, ...]
    repeated_scores: np.ndarray
    losses: Mapping[str, np.ndarray]
    curve: Mapping[str, np.ndarray]

    @property
    def n_layers(self) -> int:
        """Number of layers, L."""
        return int(self.repeated_scores.shape[2])

    @property
    def n_heads(self) -> int:
        """Number of heads per layer, H."""
        return int(self.repeated_scores.shape[3])

    @cached_property
    def learns_from_context(self) -> int | None:
        """The index of the stored step from which `MANY` tokens always help more than `FEW`.

        At this step and all later ones, the loss is lower by at least `MARGIN`. None if there is no
        such step.
        """
        helps = self.losses[f"after_{FEW}"] - self.losses[f"after_{MANY}"] >= MARGIN
        if not helps[-1]:
            return None
        without = np.flatnonzero(~helps)
        return int(without[-1]) + 1 if len(without) else 0


def models_with_history() -> tuple[str, ...]:
    """The names of models with a stored history."""
    return tuple(name for name in NAMES if (FOLDER / name / FILE).is_file())


@cache
def history(name: str) -> History | None:
    """The training history of a model, read once; None if its file is missing.

    The arrays are read-only.
    Raises: ValueError for a name that isn't in `NAMES`, or a damaged file.
    """
    if name not in NAMES:
        raise ValueError(f"{name!r} has no training history; choose one of {', '.join(NAMES)}")
    file = FOLDER / name / FILE
    return read(file, name) if file.is_file() else None


def read(file: Path, name: str) -> History:
    """Read and check the history in a file.

    Raises: ValueError with the reason if the file is damaged.
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        return _history(arrays, name)
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{file.name} of {name} is damaged: {error}") from error


def _history(arrays: Mapping[str, Any], name: str) -> History:
    steps = _checked(arrays, "steps", (None,), "iu")
    n = len(steps)
    if n == 0 or (np.diff(steps) <= 0).any():
        raise ValueError(f"the stored steps must increase, got {steps.tolist()}")
    said_twice = _checked(arrays, "said_twice", (n, len(REPEATED_WORD_SCORES), None, None), "f")
    heads = said_twice.shape[2:]
    texts = _checked(arrays, "texts", (None,), "U").tolist()
    probes = []
    titles = _checked(arrays, "titles", (len(texts),), "U").tolist()
    for number, (title, text) in enumerate(zip(titles, texts, strict=True)):
        ids = _checked(arrays, f"ids_{number}", (None,), "iu")
        t = len(ids)
        labels = _checked(arrays, f"labels_{number}", (t,), "U").tolist()
        if len(set(labels)) < t:
            raise ValueError(f"the labels of text {number} aren't unique")
        codes = _checked(arrays, f"codes_{number}", (n, *heads, t, t), "u")
        largest = _checked(arrays, f"largest_{number}", (n, *heads), "f")
        if codes.dtype != np.uint8 or not ((largest >= 0) & (largest <= 1.001)).all():
            raise ValueError(f"the weights of text {number} aren't valid 8-bit weights")
        scores = _checked(arrays, f"scores_{number}", (n, len(TEXT_SCORES), *heads), "f")
        probes.append(Probe(title, text, ids, tuple(labels), codes, largest, scores))
    if not probes:
        raise ValueError("it has no texts")
    n_points = len(_checked(arrays, "curve_step", (None,), "iu"))
    return History(
        name,
        bool(_checked(arrays, "causal", (), "b")),
        steps,
        _checked(arrays, "tokens", (n,), "iu"),
        _checked(arrays, "text_lengths", (None, 2), "iu"),
        tuple(probes),
        said_twice,
        {loss: _checked(arrays, f"loss_{loss}", (n,), "f") for loss in LOSSES},
        {column: _checked(arrays, f"curve_{column}", (n_points,), "fiu") for column in CURVE},
    )


def _checked(
    arrays: Mapping[str, Any], key: str, shape: tuple[int | None, ...], kinds: str
) -> np.ndarray:
    """A read-only array of the file, checked for its shape (None: any size) and dtype kind."""
    array: np.ndarray = arrays[key]
    fits = len(array.shape) == len(shape) and all(
        size in (None, actual) for size, actual in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype.kind not in kinds:
        raise ValueError(f"{key} must have shape {shape}, got {array.dtype} of {array.shape}")
    array.setflags(write=False)
    return array
