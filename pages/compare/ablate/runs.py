"""Compare a model with some heads switched off to the unchanged model on a text."""

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
from serving.prompts import prepare_prompt

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.analysis.ablation import HeadChange, Measure
    from attention_core.model.masked_word_head import MaskedWordHead

KINDS = ("zero", "uniform")  # as in attention_core.analysis.ablation
AUTOMATIC = "automatic"
MAX_HEADS = 12  # switched off at the same time
MAX_ALONE_TOKENS = 256  # heads × tokens up to which each head is also switched off separately

Mode = Literal["next", "masked", "states"]


@dataclass(frozen=True)
class AblationTarget:
    """A tokenized text and the position whose prediction is compared.

    mode: "next" for the token after `position`, "masked" for the word masked at `position`,
    "states" for the hidden states of all tokens (position is None). ids: the model's input. For
    "next", it ends at `position`; for "masked", it has the mask token there.
    """

    model: str
    title: str
    tokens: Tokens
    mode: Mode
    position: int | None
    ids: tuple[int, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key of results for this target."""
        return (*models.key(self.model), self.ids, self.position)


@dataclass(frozen=True)
class Effect:
    """The effect of switching heads off. Arrays are float32.

    size, second: divergence in nats and change of the top token's logit; for states, the means
    over tokens of 1 - cosine and of the relative distance. alone: `size` of each head switched
    off separately, empty for long texts. other_kind: `size` with the other way of switching off.
    before, after: log-probabilities (V) at the position, None for states. cosine, relative: (T)
    for states, otherwise None.
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
        """Memory of all arrays in bytes."""
        arrays = (self.before, self.after, self.cosine, self.relative)
        return 1000 + sum(array.nbytes for array in arrays if array is not None)


def names(spec: ModelSpec) -> list[str]:
    """Names of all heads of a model: "L0H0", "L0H1", ..."""
    return all_heads(spec.n_layers, spec.n_heads)


def parse(name: str) -> tuple[int, int]:
    """Layer and head of a name such as "L3H1".

    Raises: ValueError for text in any other format.
    """
    place = HeadId.parse(name)
    return place.layer, place.head


def count(name: str, text: str) -> int:
    """Number of tokens in a text. Raises the same errors as `question`."""
    return len(prepare_prompt(models.get(name), text, MAX_MAP_TOKENS, "this page").ids)


def question(name: str, text: str, position: str = AUTOMATIC) -> AblationTarget:
    """The target for a text. `position` is AUTOMATIC or a decimal index as text.

    Automatic picks the last token for a decoder. For a masked-word model it picks the first
    [MASK] in the text; if there isn't one, it masks the last ordinary token.
    Raises: OverLimit for a text that is too long; ValueError for a text without tokens, a position
    outside it, or a token that can't be masked.
    """
    model = models.get(name)
    tokens = prepare_prompt(model, text, MAX_MAP_TOKENS, "this page").tokens
    n = len(tokens)
    asks = _mode(model)
    if position != AUTOMATIC and not (position.isdecimal() and int(position) < n):
        raise ValueError(
            f"Position {position} doesn't exist: this text has positions 0 to {n - 1}."
        )
    if asks == "states":
        return AblationTarget(name, model.spec.title, tokens, asks, None, tokens.ids)
    if asks == "next":
        at = n - 1 if position == AUTOMATIC else int(position)
        return AblationTarget(name, model.spec.title, tokens, asks, at, tokens.ids[: at + 1])
    at = _masked_position(model, tokens) if position == AUTOMATIC else int(position)
    mask_id = model.tokenizer.mask_id
    if mask_id is None or (tokens.special[at] and tokens.ids[at] != mask_id):
        raise ValueError(f"The token at position {at} can't be masked. Choose another position.")
    ids = (*tokens.ids[:at], mask_id, *tokens.ids[at + 1 :])
    return AblationTarget(name, model.spec.title, tokens, asks, at, ids)


def _masked_position(model: Pretrained, tokens: Tokens) -> int:
    mask_id = model.tokenizer.mask_id
    if mask_id in tokens.ids:
        return tokens.ids.index(mask_id)
    last = token_text.last_word_index(tokens)
    if tokens.special[last] or not any(map(str.isalnum, tokens.pieces[last])):
        raise ValueError("This text has no word to mask. Type a word or [MASK].")
    return last


def _mode(model: Pretrained) -> Mode:
    from pretrained.masked_word import has_masked_word_head

    if model.spec.role == "decoder":
        return "next"
    return "masked" if has_masked_word_head(model) else "states"


def logits_of(question: AblationTarget) -> Callable[[Tensor], Tensor]:
    """The output layer: a decoder's output matrix or an encoder's masked-word head."""
    from attention_core.analysis.ablation import logits_function

    if question.mode == "next":
        return logits_function(models.get(question.model).core)
    return _masked_word_head(question.model)


def _own_bytes(head: MaskedWordHead) -> int:
    return size_of([part for name, part in vars(head).items() if name != "output"])


@cached(cache=MODELS, key=lambda name: models.key(name), size=_own_bytes)
def _masked_word_head(name: str) -> MaskedWordHead:
    from pretrained.masked_word import masked_word_head

    return masked_word_head(models.get(name))


def measure(question: AblationTarget, hidden: Tensor) -> Measure:
    """The function that measures changed runs against `hidden` (T, C) of the original."""
    from attention_core.analysis.ablation import prediction_effects, state_effects

    if question.position is None:
        return state_effects(hidden)
    return prediction_effects(logits_of(question), hidden, question.position)


@cached(key=lambda question, heads, kind: (*question.key, tuple(sorted(heads)), kind))
def effect(question: AblationTarget, heads: Sequence[str], kind: str) -> Effect:
    """Switch these heads off together. Their order doesn't matter.

    Raises: ValueError for a head that the model doesn't have, an unknown kind, or more than
    MAX_HEADS heads.
    """
    if len(heads) > MAX_HEADS:
        raise ValueError(f"{len(heads)} heads are selected; choose at most {MAX_HEADS}.")
    import torch

    from attention_core.analysis.ablation import run_with_changes
    from attention_core.analysis.distances import cosine_distance, relative_distance

    model = models.get(question.model)
    other_kind = KINDS[1 - KINDS.index(kind)]
    rows = [[], _changes(heads, kind), _changes(heads, other_kind)]
    if len(heads) > 1 and len(heads) * len(question.ids) <= MAX_ALONE_TOKENS:
        rows += [_changes([head], kind) for head in sorted(heads)]
    with compute.slot(), torch.inference_mode():
        hidden = run_with_changes(model.core, torch.tensor(question.ids, device=model.device), rows)
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
