"""A model with heads switched off beside the unchanged one, on a visitor's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pretrained import ModelSpec, Pretrained, Tokens
from serving import compute, models, token_text
from serving.cache import MODELS, cached, size_of
from serving.heads import HeadId, all_heads
from serving.limits import MAX_MAP_TOKENS
from serving.prompts import prepare

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.analysis.ablation import HeadChange, Measure
    from attention_core.model.masked_word_head import MaskedWordHead

KINDS = ("zero", "uniform")  # as in attention_core.analysis.ablation
AUTOMATIC = "automatic"
MAX_HEADS = 12  # switched off at once
MAX_ALONE_TOKENS = 256  # rows times tokens for which each head is also switched off alone

Asks = Literal["next", "masked", "states"]


@dataclass(frozen=True)
class AblationTarget:
    """A text as a model reads it, and where its prediction is looked at.

    asks: "next" for the token after `position`, "masked" for the word masked at `position`,
    "states" for the hidden states of all tokens (position is None). ids: what the model runs, for
    "next" up to `position` (it sees no further), for "masked" with the mask in its place.
    """

    model: str
    title: str
    tokens: Tokens
    asks: Asks
    position: int | None
    ids: tuple[int, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What results of this question are kept by."""
        return (*models.key(self.model), self.ids, self.position)


@dataclass(frozen=True)
class Effect:
    """What switching heads off changes. Arrays are float32.

    size, second: divergence in nats and change of the likeliest token's logit; for states the
    means over tokens of 1 - cosine and of the relative distance. alone: `size` of each head
    switched off by itself, none for long texts. other_kind: `size` with the other kind of change.
    before, after: log-probabilities (V) at the position, None for states. cosine, relative: (T)
    for states, else None.
    """

    size: float
    second: float
    alone: tuple[float, ...]
    other_kind: float
    before: np.ndarray | None = None
    after: np.ndarray | None = None
    cosine: np.ndarray | None = None
    relative: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.before, self.after, self.cosine, self.relative)
        return 1000 + sum(array.nbytes for array in arrays if array is not None)


def names(spec: ModelSpec) -> list[str]:
    """All heads of a model as they are written on the page: "L0H0", "L0H1", ..."""
    return all_heads(spec.n_layers, spec.n_heads)


def parse(name: str) -> tuple[int, int]:
    """Layer and head of "L3H1".

    Raises: ValueError for any other text.
    """
    place = HeadId.parse(name)
    return place.layer, place.head


def count(name: str, text: str) -> int:
    """How many tokens a model makes of a text; errors as of `question`."""
    return len(prepare(models.get(name), text, MAX_MAP_TOKENS, "this page").ids)


def question(name: str, text: str, position: str = AUTOMATIC) -> AblationTarget:
    """The text as the model reads it; `position` is AUTOMATIC or a number as text.

    Automatic is the last token of a decoder; for a masked-word model the first [MASK] that was
    typed, else the last ordinary token, which is masked then.
    Raises: OverLimit for a text that is too long, ValueError for one without a token, a position
    that it does not have, or one that cannot be masked.
    """
    model = models.get(name)
    tokens = prepare(model, text, MAX_MAP_TOKENS, "this page").tokens
    n = len(tokens)
    asks = _asks(model)
    if position != AUTOMATIC and not (position.isdecimal() and int(position) < n):
        raise ValueError(f"The text has the positions 0 to {n - 1}, but not {position}.")
    if asks == "states":
        return AblationTarget(name, model.spec.title, tokens, asks, None, tokens.ids)
    if asks == "next":
        at = n - 1 if position == AUTOMATIC else int(position)
        return AblationTarget(name, model.spec.title, tokens, asks, at, tokens.ids[: at + 1])
    at = _masked_position(model, tokens) if position == AUTOMATIC else int(position)
    mask_id = model.tokenizer.mask_id
    if mask_id is None or (tokens.special[at] and tokens.ids[at] != mask_id):
        raise ValueError(f"Position {at} holds no word that can be masked; choose another one.")
    ids = (*tokens.ids[:at], mask_id, *tokens.ids[at + 1 :])
    return AblationTarget(name, model.spec.title, tokens, asks, at, ids)


def _masked_position(model: Pretrained, tokens: Tokens) -> int:
    mask_id = model.tokenizer.mask_id
    if mask_id in tokens.ids:
        return tokens.ids.index(mask_id)
    last = token_text.last_word(tokens)
    if tokens.special[last] or not any(map(str.isalnum, tokens.pieces[last])):
        raise ValueError("There is no word to mask in this text: type one, or [MASK].")
    return last


def _asks(model: Pretrained) -> Asks:
    from pretrained.masked_word import has_masked_word_head

    if model.spec.role == "decoder":
        return "next"
    return "masked" if has_masked_word_head(model) else "states"


def logits_of(question: AblationTarget) -> Callable[[Tensor], Tensor]:
    """The output matrix of a decoder, or the masked-word head of an encoder."""
    from attention_core.analysis.ablation import logits_from

    if question.asks == "next":
        return logits_from(models.get(question.model).core)
    return _masked_word_head(question.model)


def _own_bytes(head: MaskedWordHead) -> int:
    return size_of([part for name, part in vars(head).items() if name != "output"])


@cached(cache=MODELS, key=lambda name: models.key(name), size=_own_bytes)
def _masked_word_head(name: str) -> MaskedWordHead:
    from pretrained.masked_word import masked_word_head

    return masked_word_head(models.get(name))


def measure(question: AblationTarget, hidden: Tensor) -> Measure:
    """What is measured of changed runs, given `hidden` (T, C) of the unchanged model."""
    from attention_core.analysis.ablation import prediction_effects, state_effects

    if question.position is None:
        return state_effects(hidden)
    return prediction_effects(logits_of(question), hidden, question.position)


@cached(key=lambda question, heads, kind: (*question.key, tuple(sorted(heads)), kind))
def effect(question: AblationTarget, heads: Sequence[str], kind: str) -> Effect:
    """Switch these heads off, all at once; their order changes nothing.

    Raises: ValueError for a head that the model does not have, an unknown kind, or more than
    MAX_HEADS.
    """
    if len(heads) > MAX_HEADS:
        raise ValueError(f"{len(heads)} heads are chosen; at most {MAX_HEADS} go off at once.")
    import torch

    from attention_core.analysis.ablation import hidden_with
    from attention_core.analysis.distances import cosine_distance, relative_distance

    model = models.get(question.model)
    other_kind = KINDS[1 - KINDS.index(kind)]
    rows = [[], _changes(heads, kind), _changes(heads, other_kind)]
    if len(heads) > 1 and len(heads) * len(question.ids) <= MAX_ALONE_TOKENS:
        rows += [_changes([head], kind) for head in sorted(heads)]
    with compute.slot(), torch.inference_mode():
        hidden = hidden_with(model.core, torch.tensor(question.ids, device=model.device), rows)
        values = measure(question, hidden[0])(hidden[1:])
        sizes = values[:, 0].tolist()
        numbers = {
            "size": sizes[0],
            "second": float(values[0, 1]),
            "alone": tuple(sizes[2:]),
            "other_kind": sizes[1],
        }
        if question.position is None:
            return Effect(
                **numbers,
                cosine=_array(cosine_distance(hidden[0], hidden[1])),
                relative=_array(relative_distance(hidden[0], hidden[1])),
            )
        logits = logits_of(question)(hidden[:2, question.position]).double().log_softmax(dim=-1)
        return Effect(**numbers, before=_array(logits[0]), after=_array(logits[1]))


def _changes(heads: Sequence[str], kind: str) -> list[HeadChange]:
    from attention_core.analysis.ablation import HeadChange

    return [HeadChange(*parse(head), kind) for head in heads]  # type: ignore[arg-type]


def _array(values: Tensor) -> np.ndarray:
    array: np.ndarray = values.float().cpu().numpy()
    array.setflags(write=False)
    return array
