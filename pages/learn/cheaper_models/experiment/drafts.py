"""Predictions of later tokens, and drafts that are checked in one pass.

Dimension letters: T tokens, C width, V vocabulary.
Sources: Gloeckle et al. 2024 (multi-token prediction), https://arxiv.org/abs/2404.19737;
DeepSeek-V3 2024, https://arxiv.org/abs/2412.19437; Leviathan et al. 2023 (speculative decoding),
https://arxiv.org/abs/2211.17192; Elhoushi et al. 2024 (LayerSkip: drafts from the first layers),
https://arxiv.org/abs/2404.16710.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.analysis.residual_stream import logit_lens
from attention_core.cache import KVCache
from attention_core.checks import require_int
from attention_core.generation import check_capacity
from attention_core.model.transformer import Transformer


def ranks(logits: Tensor, ids: Tensor, ahead: int) -> Tensor:
    """Rank of the token `ahead` positions later, 1 for the most likely: (T - ahead,).

    logits: (T, V), for every position. ids: (T,), the text.
    Raises: ValueError for `ahead` below 1, or logits and ids of different lengths.
    """
    require_int("ahead", ahead)
    if len(logits) != len(ids):
        raise ValueError(f"{len(logits)} rows of logits do not fit {len(ids)} tokens")
    rows = logits[: max(len(ids) - ahead, 0)]
    true = rows.gather(1, ids[ahead:, None])
    return (rows > true).sum(dim=1) + 1


def expected_tokens(acceptance: float, n_drafted: int) -> float:
    """Expected tokens per checking pass: 1 + p + p² + … + p^n.

    acceptance: the probability p that a drafted token is accepted if all before it were.
    Raises: ValueError for p outside 0 to 1, or a negative number of drafted tokens.
    """
    if not 0 <= acceptance <= 1:
        raise ValueError(f"acceptance must be 0 to 1, got {acceptance}")
    require_int("n_drafted", n_drafted, least=0)
    if acceptance == 1:
        return n_drafted + 1.0
    return (1 - acceptance ** (n_drafted + 1)) / (1 - acceptance)


@dataclass(frozen=True)
class DraftCheck:
    """A draft of n tokens and the whole model's own predictions.

    drafted: n ids. model_tokens: n + 1 ids, the whole model's most likely token after the text and
    after each drafted token, all from one pass.
    """

    drafted: tuple[int, ...]
    model_tokens: tuple[int, ...]

    @property
    def n_accepted(self) -> int:
        """The number of drafted tokens before the first that differs."""
        agree = [
            drafted == own for drafted, own in zip(self.drafted, self.model_tokens, strict=False)
        ]
        return agree.index(False) if False in agree else len(agree)

    @property
    def accepted(self) -> tuple[int, ...]:
        """The accepted tokens plus one of the whole model's own."""
        return self.model_tokens[: self.n_accepted + 1]


def early_logits(
    model: Transformer, ids: Tensor, n_layers: int, cache: KVCache | None = None
) -> Tensor:
    """Next-token logits (V,) after ids (T,), from the first `n_layers` layers only.

    cache: contains the tokens before `ids` for the same number of layers; `ids` are added to it.
    Raises: ValueError for a negative number of layers or more than the model has.
    """
    require_int("n_layers", n_layers, least=0, most=model.config.n_layers)
    n_before = 0 if cache is None else cache.length
    places = torch.arange(n_before, n_before + len(ids), device=ids.device)
    x = model.embed(ids[None], places).layer_input
    forward_pass = model.new_pass(x, places, cache)
    for block in model.blocks[:n_layers]:
        x = block(x, forward_pass)
    return logit_lens(model, x[0, -1:])[0]


def cache_text(model: Transformer, ids: Tensor) -> KVCache:
    """Cache the keys and values of a text ids (T,), except for its last token.

    A draft and its checking pass both start from this cache, so the text is read only once.
    """
    cache = model.new_cache(1, len(ids), keep_all=True)
    if len(ids) > 1:
        model(ids[None, :-1], cache=cache, last_only=True)
    return cache


def first_layers(model: Transformer, read: KVCache, n_layers: int, max_length: int) -> KVCache:
    """A cache for the first `n_layers` layers, initialized with a copy of `read`.

    max_length: its capacity in tokens.
    """
    cache = model.new_cache(1, max_length, n_layers=n_layers)
    for layer in range(n_layers):
        cache.update(layer, *read.layer(layer))
    return cache


def draft(
    model: Transformer, ids: Tensor, n_layers: int, n_drafted: int, read: KVCache | None = None
) -> DraftCheck:
    """Draft tokens after a text ids (T,) with the first layers, then check them.

    read: the result of `cache_text` for this text, which isn't changed; computed here if None.
    Raises: ValueError for fewer than 1 drafted token, a number of layers that the model doesn't
    have, or more tokens than fit into its context.
    """
    require_int("n_drafted", n_drafted)
    check_capacity(model.config, len(ids), n_drafted + 1)
    text, n_all, room = ids, model.config.n_layers, len(ids) + n_drafted
    require_int("n_layers", n_layers, least=0, most=n_all)
    read = cache_text(model, ids) if read is None else read
    cache = first_layers(model, read, n_layers, room) if n_layers else None
    for _ in range(n_drafted):
        n_seen = 0 if cache is None else cache.length
        likeliest = early_logits(model, text[n_seen:], n_layers, cache).argmax()
        text = torch.cat([text, likeliest[None]])
    checking = first_layers(model, read, n_all, room)
    # one pass of the whole model over the last token of the text and the draft
    own = model(text[None, checking.length :], cache=checking).logits[0].argmax(dim=-1)
    return DraftCheck(tuple(text[len(ids) :].tolist()), tuple(own.tolist()))
