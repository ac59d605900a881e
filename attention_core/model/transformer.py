"""One transformer for GPT-2, BERT and Llama-style models, built from the parts a config names.

Dimension letters: B batch, T new tokens, S all keys (cached and new), H query heads,
H_kv key/value heads, D head size, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_core.cache import KVCache, SlidingCache
from attention_core.checks import require_finite
from attention_core.masks import causal_mask, padding_mask
from attention_core.model.block import Block, LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.model.forward_pass import NO_HOOKS, Hooks, Pass
from attention_core.model.inputs import check_inputs, visible_positions
from attention_core.model.layers import make_norm, random_weights
from attention_core.model.output import EmbeddingParts, TransformerOutput
from attention_core.positions.rotary import rotary_angles
from attention_core.recording import Recording, recordings_of


class Transformer(nn.Module):
    """Embeddings, a stack of blocks, and the output matrix if there is one.

    Weights are random until loaded. Everything moves with `.to(device, dtype)`; a forward pass
    without cached tokens waits for the device, to check ids and masks (`check_inputs`) and its
    result (`require_finite`).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        # A tied matrix is stored once, as (C, V): the output product reads all of it in every
        # decode step, the embedding only picks a few columns.
        self.embedding = None if config.output == "tied" else _table(config.vocab_size, width)
        self.unembedding = None if config.output == "none" else _table(width, config.vocab_size)
        learned = config.positions == "learned"
        self.positions = _table(config.context_length, width) if learned else None
        self.segments = _table(config.n_segments, width) if config.n_segments else None
        post = config.norm_order == "post"
        self.embedding_norm = make_norm(config) if post else None
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.final_norm = None if post else make_norm(config)

    def forward(
        self,
        token_ids: Tensor,
        *,
        cache: KVCache | None = None,
        record: bool = False,
        attention_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        positions: Tensor | None = None,
        last_only: bool = False,
        hooks: Hooks = NO_HOOKS,
    ) -> TransformerOutput:
        """Run the new tokens, behind those in `cache` if there is one.

        Shapes: token_ids, segment_ids, positions (B, T); attention_mask (B, S) of whole numbers or
        bool, 0 for padding. Every pass with a cache needs the mask of all its columns.
        Positions that are not given count from each row's first visible token, so padding may be on
        either side. (transformers counts from the first column.) To hide the first tokens of a text
        without moving the others, give `positions`. A query that sees no key, as in a row of
        padding alone, has attention weights and a context of 0.
        `record` keeps every tensor of every layer. `last_only` computes the logits of the last
        position alone, which is all that generation needs.
        Raises: ValueError, with the numbers, for what does not fit the model (`check_inputs`), and
        NotFiniteError without cached tokens for weights that overflow on these tokens.
        """
        offset = cache.length if cache is not None else 0
        device = next(self.parameters()).device
        given = attention_mask, segment_ids, positions
        check_inputs(self.config, token_ids, cache, *given, device=device)
        if positions is None and attention_mask is not None:
            positions = visible_positions(attention_mask, token_ids.shape[1])
        elif positions is None:
            positions = torch.arange(offset, offset + token_ids.shape[1], device=device)
        embedding = self.embed(token_ids, positions, segment_ids)  # [embedding]
        forward_pass = self.new_pass(embedding.entering, positions, cache, attention_mask, hooks)
        entering = forward_pass.edited("embedding", None, embedding.entering)
        embedding = replace(embedding, entering=entering)
        with nullcontext() if cache is None else cache.whole_pass():
            hidden, layers = self.run_layers(
                entering, forward_pass, record=record, recordings=recordings_of(self)
            )
            logits = self.logits(hidden[:, -1:] if last_only else hidden)
            if logits is not None:
                logits = forward_pass.edited("logits", None, logits)
            if not offset:  # a decode step doesn't wait for the device
                require_finite("hidden states", hidden)
                if logits is not None:
                    require_finite("logits", logits, first=hidden.shape[1] - logits.shape[1])
        return TransformerOutput(logits, hidden, embedding if record else None, layers)

    def resume(self, x: Tensor, layer: int, *, hooks: Hooks = NO_HOOKS) -> Tensor:
        """Run the layers from `layer` on, on states that lie before it: (B, T, C) -> (B, T, C).

        `x` is `hidden_states[layer]` of a text without padding, or a batch of such states; the
        result is what `hidden` is after a whole pass.
        Raises: ValueError for a layer that the model does not have, or states of another width;
        NotFiniteError for weights that overflow on these states.
        """
        if not 0 <= layer < self.config.n_layers:
            raise ValueError(f"layer must be 0 to {self.config.n_layers - 1}, got {layer}")
        if x.dim() != 3 or x.shape[2] != self.config.d_model:
            raise ValueError(
                f"states must be (batch, tokens, {self.config.d_model}), got {tuple(x.shape)}"
            )
        positions = torch.arange(x.shape[1], device=x.device)
        hidden, _ = self.run_layers(x, self.new_pass(x, positions, hooks=hooks), first=layer)
        require_finite("hidden states", hidden)
        return hidden

    def new_pass(
        self,
        x: Tensor,
        positions: Tensor,
        cache: KVCache | None = None,
        attention_mask: Tensor | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> Pass:
        """What the layers need beside states x (B, T, C), of tokens at positions (T) or (B, T)."""
        n_keys = x.shape[1] if cache is None else cache.n_keys(x.shape[1])
        mask = self._mask(x.shape[1], n_keys, attention_mask, x.device)
        rotation, config = None, self.config
        if config.positions == "rotary":
            head_size, theta, scaling = config.d_rotary, config.rope_theta, config.rope_scaling
            rotation = rotary_angles(positions, head_size, theta, x.dtype, scaling)
        return Pass(mask, rotation, cache, hooks)

    def run_layers(
        self,
        x: Tensor,
        forward_pass: Pass,
        *,
        first: int = 0,
        record: bool = False,
        recordings: Sequence[Recording] = (),
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """Run the layers from `first` on, then the last norm: (B, T, C) -> (B, T, C).

        The second result holds a record of every layer that ran, with `record`. The `recordings`
        get the layers that they ask for.
        """
        layers = []
        for number in range(first, self.config.n_layers):
            if forward_pass.hooks.before_layer is not None:
                forward_pass.hooks.before_layer(number)
            block = self.block(number)
            keepers = [kept for kept in recordings if number in kept.layers]
            if not record and not keepers:
                x = block(x, forward_pass)
                continue
            layer = block.record(x, forward_pass)
            x = layer.output  # [layer output]
            if forward_pass.cache is not None:
                layer = layer.apart_from_cache()
            for keeper in keepers:
                keeper.keep(number, layer)
            if record:
                layers.append(layer)
        hidden = x if self.final_norm is None else self.final_norm(x)
        return forward_pass.edited("hidden", None, hidden), tuple(layers)

    def new_cache(
        self,
        batch_size: int,
        max_length: int,
        *,
        n_layers: int | None = None,
        keep_all: bool = False,
        cache_class: type[KVCache] | None = None,
    ) -> KVCache:
        """An empty cache with this model's sizes, dtype and device.

        It is for the first `n_layers`, None for all of them. The cache of a model with a window is
        a `SlidingCache`, which keeps only the tokens that the window can still see, or with
        `keep_all` one for every token. `cache_class` may be a class derived from either.
        Raises: ValueError if `max_length` exceeds the context length.
        """
        if max_length > self.config.context_length:
            raise ValueError(
                f"a cache of {max_length} tokens exceeds the context length of "
                f"{self.config.context_length}"
            )
        weight = next(self.parameters())
        key_shape, value_shape = self.config.cache_shapes
        window = None if keep_all else self.config.window
        chosen = cache_class or (KVCache if window is None else SlidingCache)
        ring: dict[str, Any] = {"window": window} if issubclass(chosen, SlidingCache) else {}
        return chosen(
            self.config.n_layers if n_layers is None else n_layers,
            batch_size,
            max_length,
            key_shape=key_shape,
            value_shape=value_shape,
            dtype=weight.dtype,
            device=weight.device,
            **ring,
        )

    def block(self, layer: int) -> Block:
        """A layer by its number."""
        block = self.blocks[layer]
        assert isinstance(block, Block)  # nothing else is in the list
        return block

    def out_weight(self, layer: int) -> Tensor:
        """The matrix W_O that projects the merged heads of a layer: (H*D, C).

        D is the size of a row of `record.context`: in absorbed latent attention that of the latent,
        and the matrix then holds the making of values too.
        """
        return self.block(layer).attention.out_weight()

    def token_vectors(self, token_ids: Tensor) -> Tensor:
        """Rows of the token table, before positions, segments and norms: (...) -> (..., C)."""
        table: Tensor | None = self.embedding
        if table is None:  # "tied": the columns of the output matrix
            assert self.unembedding is not None
            table = self.unembedding.t()
        return nn.functional.embedding(token_ids, table)

    def embed(
        self, token_ids: Tensor, positions: Tensor | None, segment_ids: Tensor | None = None
    ) -> EmbeddingParts:
        """What is added up to the input of layer 0: (B, T), positions (T) or (B, T) -> (B, T, C).

        Without segment ids every token belongs to the first segment. Without positions no position
        vectors are added.
        """
        token = self.token_vectors(token_ids)  # [token vectors]
        segment = position = None
        total = token
        if self.segments is not None:
            # not a view of the weights: a record doesn't change with later training
            segment = (
                self.segments[0].clone() if segment_ids is None else self.segments[segment_ids]
            )
            total = total + segment
        if self.positions is not None and positions is not None:
            position = self.positions[positions]
            total = total + position  # [plus position]
        entering = total if self.embedding_norm is None else self.embedding_norm(total)
        return EmbeddingParts(token, position, segment, total, entering)

    def logits(self, hidden: Tensor) -> Tensor | None:
        """What the output matrix makes of states: (B, T, C) -> (B, T, V); None without one."""
        return None if self.unembedding is None else hidden @ self.unembedding

    def _mask(
        self, n_new: int, n_keys: int, attention_mask: Tensor | None, device: torch.device
    ) -> Tensor | None:
        """The mask of all layers, (T, S) or (B, 1, T or 1, S); None if every key may be seen."""
        # a single new token is the last position: it sees every key, or every one in its window
        window = self.config.window
        mask = None
        if self.config.causal and (n_new > 1 or (window is not None and n_keys > window)):
            mask = causal_mask(n_new, n_keys, window=window, device=device)
        if attention_mask is None:
            return mask
        padding = padding_mask(attention_mask[:, -n_keys:])  # a window's cache has lost the first
        return padding if mask is None else mask & padding


def _table(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(random_weights(rows, columns))
