"""A recurrent encoder and an attention layer: what reaches the last vector, and how fast.

The encoder-decoder of Sutskever et al. 2014 (https://arxiv.org/abs/1409.3215) gives its decoder one
state, no matter how long the sentence is; Bahdanau et al. 2014 (https://arxiv.org/abs/1409.0473)
let the decoder look at every position instead. See the notebook, sections 3.1 to 3.3.

Nothing here is trained: the networks have their initial weights.
Dimension letters: T tokens, d size of a token's vector, h size of the state and of a context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

import torch
from torch import Tensor, nn

from attention_core.attend import attend
from attention_core.ladder import SelfAttentionV2
from attention_core.seeding import seeded

# (copies, T, d) -> (copies, size): a network's last vector for each copy
LastVector = Callable[[Tensor], Tensor]

PLAIN, TRAINABLE = "plain", "trainable"


def word_vectors(words: Sequence[str], width: int, seed: int) -> Tensor:
    """Random word vectors of length about 1, the same for repeated words: (T, d).

    Raises: ValueError for no words or a width below 1.
    """
    if not words or width < 1:
        raise ValueError(
            f"at least one word and a width of 1 are needed, got {len(words)} and {width}"
        )
    table = {}
    for word in set(words):
        number = crc32(f"{seed} {word}".encode("utf-8", "replace"))
        generator = torch.Generator().manual_seed(number)
        table[word] = torch.randn(width, generator=generator) / width**0.5
    return torch.stack([table[word] for word in words])


def encoder(width: int, state: int, seed: int, *, hold: float = 0.0) -> nn.GRU:
    """An untrained GRU from d to h, with `hold` added to the bias of its update gate.

    The gate decides how much of the old state stays (Cho et al. 2014,
    https://arxiv.org/abs/1406.1078). With a larger `hold` the state forgets more slowly, but it
    also takes in less of each new token.
    Raises: ValueError for sizes below 1.
    """
    if min(width, state) < 1:
        raise ValueError(f"sizes must be at least 1, got {width} and {state}")
    with seeded(seed):
        gru = nn.GRU(width, state, batch_first=True)
    with torch.no_grad():
        # PyTorch's order of gates: reset, update, new
        gru.get_parameter("bias_ih_l0")[state : 2 * state] += hold
    return gru.requires_grad_(False)


def last_state(gru: nn.GRU, x: Tensor) -> Tensor:
    """The last state, which is all that a decoder gets: (B, T, d) -> (B, h)."""
    _, state = gru(x)  # [last state]
    return state[0]


def attention_layer(width: int, size: int, seed: int) -> SelfAttentionV2:
    """The notebook's `SelfAttentionV2` from d to h, initialized with a seed."""
    with seeded(seed):
        return SelfAttentionV2(width, size).requires_grad_(False)


def last_context(x: Tensor, layer: SelfAttentionV2 | None) -> tuple[Tensor, Tensor]:
    """Attention's result at the last position: context (B, size) and weights (B, T).

    x is (B, T, d). Without a layer, it's the notebook's simplified attention: dot products only.
    """
    record = attend(x, x, x, scale=1.0) if layer is None else layer.record(x)
    return record.context[:, -1], record.weights[:, -1]


def influence(last: LastVector, x: Tensor, size: int) -> Tensor:
    """How strongly the last vector depends on each token: (T, d) -> (T,).

    Entry t is the Frobenius norm of the Jacobian of the last vector (`size` numbers) with respect
    to x[t] (d numbers). `last` gets `size` copies, and the i-th number comes from the i-th copy, so
    one backward pass computes every row of the Jacobian. x and the network should be float64: over
    64 tokens the norms shrink to 1e-13.
    """
    with torch.enable_grad():
        copies = x.detach().expand(size, *x.shape).clone().requires_grad_()
        each_its_own = last(copies).diagonal().sum()
        (gradients,) = torch.autograd.grad(each_its_own, copies)  # [gradient] (size, T, d)
    return gradients.norm(dim=(0, 2))


def against_equal_share(influences: Tensor) -> Tensor:
    """Divide each influence by the mean: (..., T) -> (..., T). 1 is an equal share.

    Raises: ValueError if all influences are 0.
    """
    mean = influences.mean(dim=-1, keepdim=True)
    if not bool((mean > 0.0).all()):
        raise ValueError("all influences are 0")
    return influences / mean


def first_token_shares(last: LastVector, x: Tensor, size: int, lengths: Sequence[int]) -> Tensor:
    """`against_equal_share` of token 0 in the first n tokens, for each length n: (len(lengths),).

    Raises: ValueError for a length below 1 or above T.
    """
    if min(lengths) < 1 or max(lengths) > len(x):
        raise ValueError(f"lengths must be from 1 to {len(x)}, got {list(lengths)}")
    shares = [against_equal_share(influence(last, x[:length], size))[0] for length in lengths]
    return torch.stack(shares)


def recoverable(gru: nn.GRU, n_tokens: int, *, n_sequences: int, seed: int) -> Tensor:
    """The fraction of each token that a linear reader recovers from the last state: (T,).

    Entry t is 1 - error / variance for x[t], predicted from the last state by least squares: 1 is
    all of it, 0 is nothing. Sequences are random vectors of length about 1. The reader is fitted on
    the first half and tested on the second, so entries can be slightly negative. Their sum times d
    is the number of recovered dimensions, at most h (the memory capacity of Jaeger 2001).
    Raises: ValueError unless half of the sequences are more than twice h.
    """
    half = n_sequences // 2
    if half <= 2 * gru.hidden_size or n_tokens < 1:
        raise ValueError(
            f"{n_sequences} sequences of {n_tokens} tokens are not enough to fit a state of "
            f"{gru.hidden_size}"
        )
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2 * half, n_tokens, gru.input_size, generator=generator)
    x = x / gru.input_size**0.5
    with torch.no_grad():
        state = last_state(gru, x.to(gru.get_parameter("bias_ih_l0").dtype)).double()
    state = torch.cat([state, torch.ones(2 * half, 1).double()], dim=1)  # a column for the offset
    tokens = x.double().flatten(1)  # (sequences, T * d)
    reader = torch.linalg.lstsq(state[:half], tokens[:half]).solution  # [least squares]
    error = (state[half:] @ reader - tokens[half:]).square().unflatten(1, x.shape[1:])
    variance = x[half:].double().var(dim=0).mean(dim=-1)
    return 1.0 - error.mean(dim=(0, 2)) / variance


def sequence_runs(n_tokens: int, width: int, seed: int) -> Mapping[str, Callable[[], Tensor]]:
    """Functions to time: a GRU cell in a Python loop, a GRU, and an attention layer.

    Each runs the same T tokens and returns T vectors of `width`. The cell and the GRU have the same
    weights and results, but the GRU's loop runs inside PyTorch.
    """
    gru = encoder(width, width, seed)
    cell = nn.GRUCell(width, width).requires_grad_(False)
    cell.load_state_dict({name.removesuffix("_l0"): p for name, p in gru.named_parameters()})
    layer = attention_layer(width, width, seed)
    x = torch.randn(1, n_tokens, width, generator=torch.Generator().manual_seed(seed))

    def loop() -> Tensor:
        state, states = torch.zeros(1, width), []
        for token in x.unbind(dim=1):
            state = cell(token, state)
            states.append(state)
        return torch.stack(states, dim=1)

    def whole_gru() -> Tensor:
        return gru(x)[0]

    def attention() -> Tensor:
        return layer(x)

    return {"GRU cell, a Python loop": loop, "nn.GRU": whole_gru, "attention": attention}
