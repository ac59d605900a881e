"""One transformer for GPT-2, BERT and Llama-style models, built from the parts a config names.

Dimension letters: B batch, T new tokens, S all keys (cached and new), H query heads,
H_kv key/value heads, D head size, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord, Edit
from attention_core.cache import KVCache
from attention_core.masks import causal_mask, padding_mask
from attention_core.model.block import Block
from attention_core.model.config import TransformerConfig
from attention_core.model.inputs import check_inputs
from attention_core.model.latent import LatentAttention
from attention_core.model.layers import make_norm, project, random_weights
from attention_core.model.rotary import Rotation, rotary_angles


@dataclass(frozen=True)
class TransformerOutput:
    """What a forward pass returns.

    `logits` is (B, T, V), or (B, 1, V) when only the last row was asked for, or None for a model
    without an output matrix. `hidden` is (B, T, C) after the last norm. With `record=True`,
    `records` holds one `AttentionRecord` a layer, and `hidden_states` the n_layers + 1 states of
    the residual stream: the embeddings, then the output of each block (before the last norm).
    Nothing in them is memory of a cache: they stay as they are whatever is done to it later.
    """

    logits: Tensor | None
    hidden: Tensor
    records: tuple[AttentionRecord, ...] = ()
    hidden_states: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class EmbeddingParts:
    """How the input of layer 0 came about: `total` is the sum of the parts that the model has.

    `position` is None for rotary positions, which act inside attention. `entering` is `total`
    after the embedding norm, where there is one.
    """

    token: Tensor  # (B, T, C)
    position: Tensor | None  # (T, C)
    segment: Tensor | None  # (C), or (B, T, C) with segment ids
    total: Tensor  # (B, T, C)
    entering: Tensor  # (B, T, C)


class Transformer(nn.Module):
    """Embeddings, a stack of blocks, and the output matrix if there is one.

    Weights are random until loaded. Everything moves with `.to(device, dtype)`; a forward pass
    waits for the device only to check the ids of a first one (`check_inputs`).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        tied = config.output == "tied"
        width = config.d_model
        # A tied matrix is stored once, as (C, V): the output product reads all of it in every
        # decode step, the embedding only picks a few columns.
        self.embedding = None if tied else _table(config.vocab_size, width)
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
        last_only: bool = False,
        on_layer: Callable[[int], None] | None = None,
        edit: Edit | None = None,
    ) -> TransformerOutput:
        """Run the new tokens, behind those in `cache` if one is given.

        Shapes: token_ids and segment_ids (B, T); attention_mask (B, S), non-zero for a real token
        (padding belongs on the right: positions count from the first column).
        `last_only` computes the logits of the last position alone: all that generation needs.
        `on_layer` is called with the number of each layer before it runs; by raising it abandons
        the pass, and the cache stays as it was.
        `edit` may change the record of every layer before its heads are merged and projected; what
        is recorded is the edited one.
        Raises: ValueError, with the numbers, for what does not fit the model (`check_inputs`).
        """
        offset = cache.length if cache is not None else 0
        check_inputs(self.config, token_ids, cache, attention_mask, segment_ids)
        n_new = token_ids.shape[1]
        positions = torch.arange(offset, offset + n_new, device=token_ids.device)
        x = self.embed(token_ids, positions, segment_ids).entering
        n_keys = offset + n_new if cache is None else cache.n_keys(n_new)
        mask = self._mask(n_new, n_keys, attention_mask, token_ids.device)
        rotation = self._rotation(positions, x.dtype)

        records, hidden_states = [], [x]
        for layer, block in enumerate(self.blocks):
            if on_layer is not None:
                on_layer(layer)
            x, attention_record = block(x, mask=mask, rotation=rotation, cache=cache, edit=edit)
            if record:
                if cache is not None:
                    # views of the cache's memory, which a later step may write to again
                    attention_record = replace(
                        attention_record, k=attention_record.k.clone(), v=attention_record.v.clone()
                    )
                records.append(attention_record)
                hidden_states.append(x)
        hidden = x if self.final_norm is None else self.final_norm(x)
        return TransformerOutput(
            logits=self._logits(hidden[:, -1:] if last_only else hidden),
            hidden=hidden,
            records=tuple(records),
            hidden_states=tuple(hidden_states) if record else (),
        )

    def resume(
        self,
        x: Tensor,
        layer: int,
        *,
        on_layer: Callable[[int], None] | None = None,
        edit: Edit | None = None,
    ) -> Tensor:
        """Run the layers from `layer` on, on states that lie before it: (B, T, C) -> (B, T, C).

        `x` is `hidden_states[layer]` of a text without padding, or a batch of such states; the
        result is what `hidden` is of a whole pass. `on_layer` and `edit` as there.
        Raises: ValueError for a layer that the model does not have, or states of another width.
        """
        if not 0 <= layer < self.config.n_layers:
            raise ValueError(f"layer must be 0 to {self.config.n_layers - 1}, got {layer}")
        if x.dim() != 3 or x.shape[2] != self.config.d_model:
            raise ValueError(
                f"states must be (batch, tokens, {self.config.d_model}), got {tuple(x.shape)}"
            )
        n_tokens = x.shape[1]
        mask = self._mask(n_tokens, n_tokens, None, x.device)
        rotation = self._rotation(torch.arange(n_tokens, device=x.device), x.dtype)
        for number in range(layer, self.config.n_layers):
            if on_layer is not None:
                on_layer(number)
            x, _ = self.blocks[number](x, mask=mask, rotation=rotation, cache=None, edit=edit)
        return x if self.final_norm is None else self.final_norm(x)

    def new_cache(self, batch_size: int, max_length: int, *, keep_all: bool = False) -> KVCache:
        """An empty cache with this model's sizes, dtype and device.

        For a model with a window it keeps only what the window can still see, unless `keep_all`.
        Raises: ValueError if `max_length` exceeds the context length.
        """
        if max_length > self.config.context_length:
            raise ValueError(
                f"a cache of {max_length} tokens exceeds the context length of "
                f"{self.config.context_length}"
            )
        weight = next(self.parameters())
        key_shape, value_shape = self.config.cache_shapes
        return KVCache(
            self.config.n_layers,
            batch_size,
            max_length,
            key_shape=key_shape,
            value_shape=value_shape,
            window=None if keep_all else self.config.window,
            dtype=weight.dtype,
            device=weight.device,
        )

    def out_weight(self, layer: int) -> Tensor:
        """The matrix W_O that projects the merged heads of a layer: (H*D, C).

        D is the size of a row of `record.context`: in absorbed latent attention that of the latent,
        and the matrix then holds the making of values too.
        """
        block = self.blocks[layer]
        assert isinstance(block, Block)
        attention = block.attention
        if isinstance(attention, LatentAttention):
            return attention.out_weight()
        return attention.out.weight

    def token_vectors(self, token_ids: Tensor) -> Tensor:
        """Rows of the token table, before positions, segments and norms: (...) -> (..., C)."""
        return nn.functional.embedding(token_ids, self._token_table())

    def embed(
        self, token_ids: Tensor, positions: Tensor, segment_ids: Tensor | None = None
    ) -> EmbeddingParts:
        """What is added up to the input of layer 0: (B, T) and positions (T) -> (B, T, C) each.

        Without segment ids every token belongs to the first segment.
        """
        token = self.token_vectors(token_ids)
        segment = position = None
        total = token
        if self.segments is not None:
            segment = self.segments[0] if segment_ids is None else self.segments[segment_ids]
            total = total + segment
        if self.positions is not None:
            position = self.positions[positions]
            total = total + position
        entering = total if self.embedding_norm is None else self.embedding_norm(total)
        return EmbeddingParts(token, position, segment, total, entering)

    def _rotation(self, positions: Tensor, dtype: torch.dtype) -> Rotation | None:
        """The angles of rotary positions; None for a model without them."""
        if self.config.positions != "rotary":
            return None
        return rotary_angles(positions, self.config.d_rotary, self.config.rope_theta, dtype)

    def _token_table(self) -> Tensor:
        """Token embeddings as (V, C): a parameter, or a view of the tied matrix."""
        if self.embedding is not None:
            return self.embedding
        assert self.unembedding is not None  # "tied", the only case without an embedding
        return self.unembedding.t()

    def _logits(self, hidden: Tensor) -> Tensor | None:
        """(B, T, C) -> (B, T, V)."""
        return None if self.unembedding is None else project(hidden, self.unembedding)

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
