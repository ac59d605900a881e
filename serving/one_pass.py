"""Data for the picture of a forward pass, and for the layers and heads that can be opened in it.

Dimension letters: L layers, H query heads, T tokens, S = T keys, D head size, C width, F width
inside the feed-forward network. Every array is float32 and comes from the recorded tensors of one
`Run`. The picture shows the first `N_STRIP` components of a vector, but lengths are computed from
all C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pretrained.tokenization.tokens import Tokens
from serving import compute, models, token_text
from serving.cache import cached, size_of
from serving.heads import HeadId
from serving.limits import MAX_ONE_PASS_TOKENS
from serving.recording import collect_tensors
from serving.runs import Run, TensorSlot, run, run_forward

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import AttentionRecord
    from attention_core.analysis.disabled_parts import DisabledParts
    from attention_core.model.block import LayerRecord
    from attention_core.model.transformer import Transformer
    from pretrained import Tokenizer

_FEED_FORWARD = re.compile(r"F([0-9]{1,4})")
N_STRIP = 16  # components of a vector that are drawn
N_DRAWN = 7  # most likely next tokens that are drawn as bars and explained
N_NEXT = 50  # most likely next tokens to which temperature and top-k apply
N_NEURONS = 8  # neurons shown per token and layer
# The temperatures 0.1, 0.2, ..., 2.0, for which we store the sum over the whole vocabulary
TEMPERATURES = tuple(round(0.1 * step, 1) for step in range(1, 21))


@dataclass(frozen=True, eq=False)
class NextToken:
    """A decoder's prediction of the next token.

    tokens, ids, logits: the most likely tokens, in descending order. log_sums: for each of
    `TEMPERATURES` the logarithm of the sum of exp(logit / temperature) over the whole vocabulary,
    so exp(logit / temperature - log_sum) is a token's probability.
    """

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    logits: np.ndarray
    log_sums: np.ndarray


@dataclass(frozen=True, eq=False)
class OnePass:
    """The data that the picture shows before a layer or head is opened.

    final_states: the first components of the last norm's output, (T, N_STRIP). state_norms: lengths
    of the residual stream before the first layer and after each layer, (L + 1, T). guesses,
    guess_probabilities: the most likely next token after each number of layers (logit lens), and
    its probability; empty for a model without an output matrix.
    """

    run: Run
    final_states: np.ndarray
    state_norms: np.ndarray
    guesses: tuple[str, ...]
    guess_probabilities: np.ndarray
    next_token: NextToken | None


@dataclass(frozen=True, eq=False)
class LayerDetail:
    """The vectors inside a layer.

    strips: the first components (T, N_STRIP) of each tensor, by its name in `LayerRecord`. norms:
    the lengths (T,), by the same names. neurons: the indices of each token's strongest neurons
    (T, N_NEURONS), ranked by the length of the vector that they add. activations: their values
    after the activation function. neuron_norms: the lengths of the vectors that they add.
    """

    layer: int
    strips: dict[str, np.ndarray]
    norms: dict[str, np.ndarray]
    neurons: np.ndarray
    activations: np.ndarray
    neuron_norms: np.ndarray


@dataclass(frozen=True, eq=False)
class HeadDetail:
    """Every step inside a head, from q and k to its contribution to the residual stream.

    q, k, v, context (T, D); scores q . k, scaled (multiplied by `scale` and masked) and weights
    (T, S). out_weight: the first columns of the head's rows of W_O, (D, N_STRIP). added: the first
    components of context @ W_O, (T, N_STRIP). added_norms: the lengths of the whole vectors, (T,).
    """

    layer: int
    head: int
    scale: float
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scores: np.ndarray
    scaled: np.ndarray
    weights: np.ndarray
    context: np.ndarray
    out_weight: np.ndarray
    added: np.ndarray
    added_norms: np.ndarray


# The tensors of a layer that are drawn as strips, in the order of a pre-norm layer.
STRIPS = (
    "input",
    "attention_reads",
    "attention",
    "attention_sum",
    "mlp_reads",
    "mlp_output",
    "output",
)


def _text_key(name: str, text: str, off: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (*models.key(name), text, *off)


@cached(key=_text_key)
def one_pass(name: str, text: str, off: tuple[str, ...] = ()) -> OnePass:
    """A forward pass over a text of at most `MAX_ONE_PASS_TOKENS`, cached for all visitors.

    off: the parts that are switched off, from `parse_disabled`.
    Raises: OverLimit; ValueError for a text without tokens or for a part that the model doesn't
    have; the errors of loading a model.
    """
    recorded_run = run(name, text, MAX_ONE_PASS_TOKENS, "the whole pass in one picture")
    return _build_pass(_ablated_run(recorded_run, off) if off else recorded_run)


@cached(key=lambda name, text, ids: (*models.key(name), text, ids))
def extended_pass(name: str, text: str, new_ids: tuple[int, ...]) -> OnePass:
    """The pass over a text followed by generated tokens; errors as in `one_pass`."""
    finished, model = run(name, text, MAX_ONE_PASS_TOKENS), models.get(name)
    tokens = finished.tokens
    grown = Tokens(
        text=tokens.text,
        ids=tokens.ids + new_ids,
        pieces=tokens.pieces + token_text.pieces(model.tokenizer, new_ids),
        # empty, because generated tokens aren't part of the visitor's text
        spans=tokens.spans + ((len(tokens.text), len(tokens.text)),) * len(new_ids),
        special=tokens.special + (False,) * len(new_ids),
        raw=tokens.raw and tokens.raw + tuple(token_text.token_bytes(model.tokenizer, new_ids)),
    )
    return _build_pass(run_forward((*finished.key, *map(str, new_ids)), model, grown))


def _build_pass(base_run: Run) -> OnePass:
    """The data that the picture shows for a run."""
    import torch

    from attention_core.analysis.residual_stream import token_norms

    core, tensors = base_run.pretrained.core, base_run.tensors
    with compute.slot(), torch.inference_mode():
        last = base_run.state(core.config.n_layers)
        leaving = last if core.final_norm is None else core.final_norm(last)
        guesses, probabilities, next_token = _predictions(base_run, core)
    return OnePass(
        run=base_run,
        final_states=_strip(leaving[0]),
        state_norms=_array(token_norms(tensors.states)),
        guesses=guesses,
        guess_probabilities=probabilities,
        next_token=next_token,
    )


def parse_disabled(text: str, n_layers: int, n_heads: int) -> tuple[str, ...]:
    """Parse a list of parts to switch off; the result is sorted, without duplicates.

    A part is a head (`L3H1`), the feed-forward network of a layer (`F3`), `mask` or `scale`. Parts
    are separated by spaces.
    Raises: ValueError for an unknown part, or one that a model of this size doesn't have.
    """
    parts = tuple(sorted({_canonical_name(part) for part in text.split()}))
    for part in parts:
        try:
            _disabled_parts((part,)).check(n_layers, n_heads)
        except ValueError:
            raise ValueError(
                f"This model has no {part[:20]}: its layers go from 0 to {n_layers - 1}, and its "
                f"heads from 0 to {n_heads - 1}."
            ) from None
    return parts


def _canonical_name(part: str) -> str:
    """The normalized name of a part: L03H1 becomes L3H1. Raises ValueError for other text."""
    if part in ("mask", "scale"):
        return part
    if feed_forward := _FEED_FORWARD.fullmatch(part):
        return f"F{int(feed_forward[1])}"
    try:
        return str(HeadId.parse(part))
    except ValueError:
        raise ValueError(
            f"“{part[:20]}” can't be switched off. Under Settings, enter a head such as L3H1, a "
            "feed-forward network such as F3, mask or scale."
        ) from None


def _disabled_parts(parts: tuple[str, ...]) -> DisabledParts:
    """Convert names of parts to the core's `DisabledParts`."""
    from attention_core.analysis.disabled_parts import DisabledParts

    heads = [HeadId.parse(part) for part in parts if part.startswith("L")]
    return DisabledParts(
        heads=frozenset((head.layer, head.head) for head in heads),
        feed_forwards=frozenset(int(part[1:]) for part in parts if part.startswith("F")),
        mask="mask" not in parts,
        scale="scale" not in parts,
    )


@dataclass(frozen=True, eq=False)
class AblatedRun(Run):
    """A `run` with the parts in `off` switched off; not causal if the mask is off."""

    run: Run
    disabled: DisabledParts
    off: tuple[str, ...]

    def _rerun(self) -> Run:
        with compute.yield_slot():
            return _ablated_run(self.run, self.off)

    def head(self, layer: int, head: int) -> AttentionRecord:
        """Every step of one head's attention; the context is zero if the head is off."""
        record = super().head(layer, head)
        if (layer, head) not in self.disabled.heads:
            return record
        return replace(record, context=record.context * 0.0)

    def layer(self, number: int) -> LayerRecord:
        """Every tensor of one layer; reruns the layer from its recorded input."""
        import torch

        from attention_core.analysis.disabled_parts import run_layer_without

        with torch.inference_mode():
            return run_layer_without(
                self.pretrained.core, number, self.state(number), self.disabled
            )


@cached(key=lambda base_run, off: (*base_run.key, *off), size=lambda run: size_of(run.tensors))
def _ablated_run(base_run: Run, off: tuple[str, ...]) -> AblatedRun:
    """Run the same model on the same text with parts switched off."""
    import torch

    from attention_core.analysis.disabled_parts import run_without

    model, switched = base_run.pretrained, _disabled_parts(off)
    with compute.slot(), torch.inference_mode():
        ids = torch.tensor([base_run.tokens.ids], device=model.device)
        _, layers = run_without(model.core, ids, switched)
        states = [layer.input for layer in layers] + [layers[-1].output]
        tensors = collect_tensors(model.core, states, layers)
    return AblatedRun(
        key=(*base_run.key, *off),
        title=base_run.title,
        tokens=base_run.tokens,
        scale=base_run.scale if switched.scale else 1.0,
        causal=base_run.causal and switched.mask,
        slot=TensorSlot(tensors),
        run=base_run,
        disabled=switched,
        off=off,
    )


def _predictions(
    base_run: Run, core: Transformer
) -> tuple[tuple[str, ...], np.ndarray, NextToken | None]:
    """The last position's guesses after each layer, and its final prediction (decoders only)."""
    import torch

    from attention_core.analysis.residual_stream import logit_lens

    if not core.config.causal or core.unembedding is None:
        return (), np.zeros(0, np.float32), None
    tokenizer = base_run.pretrained.tokenizer
    states = base_run.tensors.states[:, -1].to(core.unembedding.device, core.unembedding.dtype)
    logits = logit_lens(core, states).float()  # (L + 1, V)
    top_probabilities, ids = logits.softmax(dim=-1).max(dim=-1)
    top = logits[-1].topk(min(N_NEXT, logits.shape[-1]))
    temperatures = torch.tensor(TEMPERATURES, device=logits.device)
    log_sums = (logits[-1] / temperatures[:, None]).logsumexp(dim=-1)
    next_ids = tuple(top.indices.tolist())
    return (
        token_text.pieces(tokenizer, ids.tolist()),
        _array(top_probabilities),
        NextToken(
            tokens=_words(tokenizer, next_ids),
            ids=next_ids,
            logits=_array(top.values),
            log_sums=_array(log_sums),
        ),
    )


def _words(tokenizer: Tokenizer, ids: tuple[int, ...]) -> tuple[str, ...]:
    """The next tokens as words; spaces are marked only where drawn tokens would look the same."""
    drawn, whole = token_text.pieces(tokenizer, ids[:N_DRAWN]), token_text.pieces(tokenizer, ids)
    return drawn + whole[N_DRAWN:]


@cached(key=lambda base_run, layer: (*base_run.key, layer))
def layer_detail(base_run: Run, layer: int) -> LayerDetail:
    """The vectors inside a layer of a run; reruns the layer from its recorded input."""
    import torch

    from attention_core.analysis.residual_stream import token_norms

    record, block = base_run.layer(layer), base_run.pretrained.core.block(layer)
    down = block.mlp.down.matrix  # (F, C)
    attention = record.attention.output
    assert attention is not None  # a layer always records its attention output
    with torch.inference_mode():
        tensors = {
            name: (attention if name == "attention" else getattr(record, name))[0]
            for name in STRIPS
        }
        hidden = record.mlp_hidden[0]
        written = hidden.abs() * torch.linalg.vector_norm(down, dim=1)  # (T, F)
        strongest = written.topk(min(N_NEURONS, written.shape[1]), dim=-1)
        activations = hidden.gather(-1, strongest.indices)
    return LayerDetail(
        layer=layer,
        strips={name: _strip(tensor) for name, tensor in tensors.items()},
        norms={name: _array(token_norms(tensor)) for name, tensor in tensors.items()},
        neurons=strongest.indices.cpu().numpy(),
        activations=_array(activations),
        neuron_norms=_array(strongest.values),
    )


@cached(key=lambda base_run, layer, head: (*base_run.key, layer, head))
def head_detail(base_run: Run, layer: int, head: int) -> HeadDetail:
    """Every step inside one head of a run."""
    import torch

    from attention_core.analysis.residual_stream import token_norms

    record = base_run.head(layer, head)
    core = base_run.pretrained.core
    size = record.context.shape[-1]
    with torch.inference_mode():
        out_weight = core.out_weight(layer)[head * size : (head + 1) * size]  # (D, C)
        added = record.context.to(out_weight) @ out_weight  # (T, D) -> (T, C)
    return HeadDetail(
        layer=layer,
        head=head,
        scale=record.scale,
        q=_array(record.q),
        k=_array(record.k),
        v=_array(record.v),
        scores=_array(record.scores),
        scaled=_array(record.scaled_scores),
        weights=_array(record.weights),
        context=_array(record.context),
        out_weight=_strip(out_weight),
        added=_strip(added),
        added_norms=_array(token_norms(added)),
    )


def _strip(vectors: Tensor) -> np.ndarray:
    """The first components of each vector: (T, C) -> (T, N_STRIP)."""
    return _array(vectors[..., :N_STRIP])


def _array(tensor: Tensor) -> np.ndarray:
    """Copy a tensor to an array; a view of a few values would keep the whole tensor in memory."""
    array: np.ndarray = tensor.detach().float().cpu().numpy().copy()
    return array
