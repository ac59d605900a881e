"""How the heads of the models that were trained here came to be: what was kept of each training.

`python -m training.history` writes a small file a model: the attention weights of every head on a
few texts and some scores of the heads, at steps that lie further and further apart, with the loss.
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

# Names of statistics as in attention_core/analysis/head_statistics.py: of the weights on a text,
# and of those on random words said twice.
OF_A_TEXT = ("previous", "next", "first", "same")
OF_WORDS_SAID_TWICE = ("induction", "duplicate")

LEVELS = 255  # of a stored weight: round(LEVELS * sqrt(weight / largest of the head))
CONTEXTS = (40, 200, 400)  # tokens before those whose loss is compared, give or take 20
LOSSES = ("held_out", *(f"after_{before}" for before in CONTEXTS))
CURVE = ("step", "train_loss", "held_out_loss")
FEW, MANY = CONTEXTS[:2]  # what is compared: the longest texts come only at the end of a training
MARGIN = 0.1  # nats by which more context has to help before it counts as learning from context


@dataclass(frozen=True, eq=False)
class Probe:
    """A text that the model read at every stored step.

    title: what there is to see in it, in some words. ids (T). labels: one for each token, unique.
    codes (N, L, H, T, T) of uint8 and largest (N, L, H): the weights, see `weights`. scores
    (N, 4, L, H): the statistics `OF_A_TEXT`, from the weights before they were rounded; NaN for
    what the text or the model does not have.
    """

    title: str
    text: str
    ids: np.ndarray
    labels: tuple[str, ...]
    codes: np.ndarray
    largest: np.ndarray
    scores: np.ndarray

    def weights(self, number: int) -> np.ndarray:
        """The weights of all heads at the stored step with this number: (L, H, T, T), float32."""
        shares = self.codes[number].astype(np.float32) / LEVELS
        weights: np.ndarray = self.largest[number][..., None, None] * shares**2
        return weights

    @cached_property
    def error(self) -> float:
        """The largest difference there can be between a weight and what is stored of it."""
        return float(self.largest.max()) * (LEVELS - 0.25) / LEVELS**2


@dataclass(frozen=True, eq=False)
class History:
    """The training of one model.

    steps, tokens (N): after how many steps and trained tokens. text_lengths (K, 2): from which step
    on texts of how many tokens were read. said_twice (N, 2, L, H): the statistics
    `OF_WORDS_SAID_TWICE`. losses: `LOSSES` at each stored step, in nats a token, on books that
    training never saw: of all tokens asked for in texts of the last length, and of the same tokens
    with about 40, 200 and 400 tokens before them (NaN in an encoder, and while training has not
    seen texts that long). curve: columns of the run's own curve, (M) each; `held_out_loss` is NaN
    where it was not measured.
    """

    name: str
    causal: bool
    steps: np.ndarray
    tokens: np.ndarray
    text_lengths: np.ndarray
    probes: tuple[Probe, ...]
    said_twice: np.ndarray
    losses: Mapping[str, np.ndarray]
    curve: Mapping[str, np.ndarray]

    @property
    def n_layers(self) -> int:
        """L."""
        return int(self.said_twice.shape[2])

    @property
    def n_heads(self) -> int:
        """H."""
        return int(self.said_twice.shape[3])

    @cached_property
    def learns_from_context(self) -> int | None:
        """The number of the stored step from which on `MANY` tokens help more than `FEW` do.

        By `MARGIN` or more, and at every later stored step too. None if there is no such step.
        """
        helps = self.losses[f"after_{FEW}"] - self.losses[f"after_{MANY}"] >= MARGIN
        if not helps[-1]:
            return None
        without = np.flatnonzero(~helps)
        return int(without[-1]) + 1 if len(without) else 0


def stored() -> tuple[str, ...]:
    """The names of the models whose files are there."""
    return tuple(name for name in NAMES if (FOLDER / name / FILE).is_file())


@cache
def history(name: str) -> History | None:
    """What was kept of a model's training; None where its file is not there.

    Read once; the arrays cannot be written to.
    Raises: ValueError for a name that is not in `NAMES`, and for a damaged file.
    """
    if name not in NAMES:
        raise ValueError(f"no training of {name!r} was kept, only of {', '.join(NAMES)}")
    file = FOLDER / name / FILE
    return read(file, name) if file.is_file() else None


def read(file: Path, name: str) -> History:
    """The history in a file, checked.

    Raises: ValueError that says what is wrong with it.
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
        raise ValueError(f"the stored steps do not rise: {steps.tolist()}")
    said_twice = _checked(arrays, "said_twice", (n, len(OF_WORDS_SAID_TWICE), None, None), "f")
    heads = said_twice.shape[2:]
    texts = _checked(arrays, "texts", (None,), "U").tolist()
    probes = []
    titles = _checked(arrays, "titles", (len(texts),), "U").tolist()
    for number, (title, text) in enumerate(zip(titles, texts, strict=True)):
        ids = _checked(arrays, f"ids_{number}", (None,), "iu")
        t = len(ids)
        labels = _checked(arrays, f"labels_{number}", (t,), "U").tolist()
        if len(set(labels)) < t:
            raise ValueError(f"labels of text {number} are not unique")
        codes = _checked(arrays, f"codes_{number}", (n, *heads, t, t), "u")
        largest = _checked(arrays, f"largest_{number}", (n, *heads), "f")
        if codes.dtype != np.uint8 or not ((largest >= 0) & (largest <= 1.001)).all():
            raise ValueError(f"the weights of text {number} are no weights in 8 bits")
        scores = _checked(arrays, f"scores_{number}", (n, len(OF_A_TEXT), *heads), "f")
        probes.append(Probe(title, text, ids, tuple(labels), codes, largest, scores))
    if not probes:
        raise ValueError("there is no text")
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
    """An array of the file, read-only, with this shape (None: any size) and a kind of numbers."""
    array: np.ndarray = arrays[key]
    fits = len(array.shape) == len(shape) and all(
        size in (None, actual) for size, actual in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype.kind not in kinds:
        raise ValueError(f"{key} should be {shape}, got {array.dtype} of {array.shape}")
    array.setflags(write=False)
    return array
