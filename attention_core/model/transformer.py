"""One transformer for GPT-2, BERT and Llama styles, built from a configuration.

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
from attention_core.model.inputs import check_inputs, visible_positions
from attention_core.model.layers import make_norm, random_weights
from attention_core.model.output import EmbeddingParts, TransformerOutput
from attention_core.model.pass_context import NO_HOOKS, Hooks, PassContext
from attention_core.positions.rotary import rotary_angles
from attention_core.recording import Recording, recordings_of


class Transformer(nn.Module):
    """Embeddings, a stack of blocks, and an output matrix if the config has one.

    Weights are random until you load some. `.to(device, dtype)` moves everything. A pass without
    cached tokens waits for the device, because it checks its inputs (`check_inputs`) and its result
    (`require_finite`).

    >>> from attention_core import gpt2_config
    >>> config = gpt2_config(d_model=64, n_layers=2, n_heads=4, vocab_size=100, context_length=32)
    >>> model = Transformer(config)
    >>> output = model(torch.tensor([[1, 2, 3]]), record=True)
    >>> output.logits.shape, output.records[0].weights.shape
    (torch.Size([1, 3, 100]), torch.Size([1, 4, 3, 3]))
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        # A tied matrix is stored once, as (C, V): every decode step reads all of it for the logits,
        # while the embedding only needs a few columns.
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
        """Run new tokens through the model, after those in `cache` if there is one.

        Args:
            token_ids: (B, T).
            cache: from `new_cache`; stores the new keys and values.
            record: return every intermediate tensor of every layer.
            attention_mask: (B, S) of whole numbers or bool, 0 for padding. With a cache it has to
                cover the cached columns too.
            segment_ids: (B, T), for models with segments.
            positions: (B, T). By default they start at each row's first visible token, so padding
            may be on either side (in transformers they start at the first column). Pass
                positions to hide the first tokens of a text without shifting the others.
            last_only: compute logits for the last position only, which is enough for generation.
            hooks: callbacks for this pass.

        A query that can't see any key, as in a row of padding, has weights and a context of 0.

        Raises: ValueError with the numbers if an input doesn't fit the model (`check_inputs`).
        NotFiniteError if the weights overflow on these tokens, in passes without cached tokens.
        """
        offset = cache.length if cache is not None else 0
        device = next(self.parameters()).device
        inputs = attention_mask, segment_ids, positions
        check_inputs(self.config, token_ids, cache, *inputs, device=device)
        if positions is None and attention_mask is not None:
            positions = visible_positions(attention_mask, token_ids.shape[1])
        elif positions is None:
            positions = torch.arange(offset, offset + token_ids.shape[1], device=device)
        embedding = self.embed(token_ids, positions, segment_ids)  # [embedding]
        forward_pass = self.new_pass(embedding.layer_input, positions, cache, attention_mask, hooks)
        entering = forward_pass.apply_edit("embedding", None, embedding.layer_input)
        embedding = replace(embedding, layer_input=entering)
        with nullcontext() if cache is None else cache.whole_pass():
            hidden, layers = self.run_layers(
                entering, forward_pass, record=record, recordings=recordings_of(self)
            )
            logits = self.logits(hidden[:, -1:] if last_only else hidden)
            if logits is not None:
                logits = forward_pass.apply_edit("logits", None, logits)
            if not offset:  # decode steps don't wait for the device
                require_finite("hidden states", hidden)
                if logits is not None:
                    require_finite("logits", logits, first=hidden.shape[1] - logits.shape[1])
        return TransformerOutput(logits, hidden, embedding if record else None, layers)

    def resume(self, x: Tensor, layer: int, *, hooks: Hooks = NO_HOOKS) -> Tensor:
        """Run the model from layer `layer` to the last norm: (B, T, C) -> (B, T, C).

        x: `hidden_states[layer]` of a text without padding, or a batch of such states. The result
        equals `hidden` of a whole pass.
        Raises: ValueError if the layer doesn't exist or the states have a different width;
        NotFiniteError if the weights overflow on these states.
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
    ) -> PassContext:
        """Mask and rotation for states x (B, T, C) at positions (T) or (B, T)."""
        n_keys = x.shape[1] if cache is None else cache.n_keys(x.shape[1])
        mask = self._mask(x.shape[1], n_keys, attention_mask, x.device)
        rotation, config = None, self.config
        if config.positions == "rotary":
            head_size, theta, scaling = config.d_rotary, config.rope_theta, config.rope_scaling
            rotation = rotary_angles(positions, head_size, theta, x.dtype, scaling)
        return PassContext(mask, rotation, cache, hooks)

    def run_layers(
        self,
        x: Tensor,
        forward_pass: PassContext,
        *,
        first: int = 0,
        record: bool = False,
        recordings: Sequence[Recording] = (),
    ) -> tuple[Tensor, tuple[LayerRecord, ...]]:
        """Run the layers from `first` on, then the last norm: (B, T, C) -> (B, T, C).

        Also returns the record of every layer if `record` is set. Each of the `recordings` receives
        the layers it selected.
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
                layer = layer.detached_from_cache()
            for keeper in keepers:
                keeper.keep(number, layer)
            if record:
                layers.append(layer)
        hidden = x if self.final_norm is None else self.final_norm(x)
        return forward_pass.apply_edit("hidden", None, hidden), tuple(layers)

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

        A model with a window gets a `SlidingCache`, which stores only the tokens that the window
        can still reach.

        n_layers: the first layers only, None for all. keep_all: store every token despite the
        window.
        cache_class: `KVCache`, `SlidingCache` or a subclass.
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
        """The layer with this index."""
        block = self.blocks[layer]
        assert isinstance(block, Block)  # the list contains only blocks
        return block

    def out_weight(self, layer: int) -> Tensor:
        """The output matrix W_O of a layer, which projects its merged heads: (H*D, C).

        D is the last dimension of `record.context`. In absorbed latent attention that's the rank of
        the latent, and the matrix also includes the step from latents to values.
        """
        return self.block(layer).attention.out_weight()

    def token_vectors(self, token_ids: Tensor) -> Tensor:
        """Rows of the token embedding, without positions or norms: (...) -> (..., C)."""
        table: Tensor | None = self.embedding
        if table is None:  # tied: the columns of the output matrix
            assert self.unembedding is not None
            table = self.unembedding.t()
        return nn.functional.embedding(token_ids, table)

    def embed(
        self, token_ids: Tensor, positions: Tensor | None, segment_ids: Tensor | None = None
    ) -> EmbeddingParts:
        """Compute the input of layer 0 and its parts: (B, T) -> (B, T, C).

        positions: (T) or (B, T); None adds no position vectors. segment_ids: (B, T), by default all
        in the first segment.
        """
        token = self.token_vectors(token_ids)  # [token vectors]
        segment = position = None
        total = token
        if self.segments is not None:
            # a copy, so that later training doesn't change a record
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
        """Apply the output matrix: (B, T, C) -> (B, T, V); None if there isn't one."""
        return None if self.unembedding is None else hidden @ self.unembedding

    def _mask(
        self, n_new: int, n_keys: int, attention_mask: Tensor | None, device: torch.device
    ) -> Tensor | None:
        """The mask for all layers, (T, S) or (B, 1, T or 1, S); None hides nothing."""
        # a single new token is the last position, so it sees every key or its whole window
        window = self.config.window
        mask = None
        if self.config.causal and (n_new > 1 or (window is not None and n_keys > window)):
            mask = causal_mask(n_new, n_keys, window=window, device=device)
        if attention_mask is None:
            return mask
        padding = padding_mask(attention_mask[:, -n_keys:])  # a sliding cache drops old columns
        return padding if mask is None else mask & padding


def _table(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(random_weights(rows, columns))
