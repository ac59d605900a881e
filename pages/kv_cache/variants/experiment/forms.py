"""One model with different forms of attention: MHA, GQA, MQA, MLA, and a window.

All forms have the same width, layers and query heads, and share as many weights as possible. They
differ in what a token adds to the cache and in which heads read it.

Sources: multi-query, Shazeer 2019, https://arxiv.org/abs/1911.02150; grouped-query, Ainslie et al.
2023, https://arxiv.org/abs/2305.13245; latent, DeepSeek-V2, https://arxiv.org/abs/2405.04434;
window, Mistral 7B, https://arxiv.org/abs/2310.06825.

Letters: H query heads, H_kv key/value heads, D head size, r rank of the latent, R size of the
rotary key that all heads share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.model.block import Block, make_attention
from attention_core.model.config import LatentConfig, TransformerConfig
from attention_core.model.inputs import check_inputs
from attention_core.model.transformer import Transformer
from attention_core.model.variants import with_weights
from attention_core.seeding import seeded
from pages.kv_cache.variants.experiment.pool_kv_heads import mean_pooled_kv_heads

MHA, MQA, MLA = "MHA", "MQA", "MLA"
_OF_ATTENTION = {"n_kv_heads", "head_size", "latent", "window"}  # fields that differ between forms


@dataclass(frozen=True)
class AttentionForm:
    """A form of attention: name ("MHA", "GQA 4", "MQA" or "MLA") and configuration.

    The number after "GQA" is the number of key/value heads, that is, of groups.
    """

    name: str
    config: TransformerConfig

    @property
    def numbers_per_token(self) -> int:
        """Numbers cached per token and layer: 2 * H_kv * D, or r + R."""
        return sum(heads * size for heads, size in self.config.cache_shapes)


def divisors(number: int) -> tuple[int, ...]:
    """The possible numbers of groups: all divisors of `number`, largest first.

    Raises: ValueError for a number below 1.
    """
    if number < 1:
        raise ValueError(f"a number of heads must be at least 1, got {number}")
    return tuple(d for d in range(number, 0, -1) if number % d == 0)


def kv_head_readers(n_heads: int, n_kv_heads: int) -> tuple[tuple[int, ...], ...]:
    """The query heads that read each key/value head: H / H_kv neighboring heads each.

    Raises: ValueError if the heads cannot be shared evenly.
    """
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ValueError(f"{n_heads} query heads cannot share {n_kv_heads} key/value heads evenly")
    size = n_heads // n_kv_heads
    return tuple(tuple(range(g * size, (g + 1) * size)) for g in range(n_kv_heads))


def latent_sizes(head_size: int) -> LatentConfig:
    """Sizes of latent attention in DeepSeek's proportions: r = 4 D, R = D / 2.

    Queries aren't compressed here, because that wouldn't shrink the cache.
    Source: DeepSeek-V2, section 2.1.4 and table 1; DeepSeek-V3 uses the same sizes (512 and 64 for
    heads of size 128).
    Raises: ValueError if half of the head size isn't even.
    """
    if head_size < 4 or head_size % 4:
        raise ValueError(f"half of the head size must be even, got {head_size}")
    return LatentConfig(
        kv_rank=4 * head_size,
        nope_head_size=head_size,
        rope_head_size=head_size // 2,
        v_head_size=head_size,
    )


def ladder(base: TransformerConfig) -> tuple[AttentionForm, ...]:
    """All forms of a multi-head model with rotary positions, from MHA to expanded MLA.

    Raises: ValueError for a model that already shares key/value heads or has latents.
    """
    if base.latent is not None or base.kv_heads != base.n_heads:
        raise ValueError(
            f"the ladder starts with a key/value head for each of {base.n_heads} query heads, "
            f"got {base.cache_shapes[0][0]}"
        )
    variants = [AttentionForm(MHA, replace(base, n_kv_heads=None))]
    for groups in divisors(base.n_heads)[1:]:
        name = MQA if groups == 1 else f"GQA {groups}"
        variants.append(AttentionForm(name, replace(base, n_kv_heads=groups)))
    latent = replace(base, n_kv_heads=None, head_size=None, latent=latent_sizes(base.d_head))
    return (*variants, AttentionForm(MLA, latent))


def with_window(variant: AttentionForm, window: int) -> AttentionForm:
    """The same form with a window: only the last tokens are seen and cached."""
    return AttentionForm(f"{variant.name}, window {window}", replace(variant.config, window=window))


def build(base: Transformer, variant: AttentionForm, *, seed: int) -> Transformer:
    """Build the variant of a multi-head model.

    Grouped key/value heads are means of the base's heads. Latent attention gets random query and
    key/value matrices from `seed`. All other weights are shared with `base`, not copied.
    Raises: ValueError if the configuration differs from the base in more than its attention.
    """
    config = variant.config
    shared = {field.name for field in fields(config)} - _OF_ATTENTION
    if any(getattr(config, name) != getattr(base.config, name) for name in shared):
        raise ValueError(f"{variant.name} differs from the base in more than its attention")
    if config.latent is None:
        same = config.kv_heads == base.config.kv_heads
        model = base if same else mean_pooled_kv_heads(base, config.kv_heads, share=True)
        return with_weights(config, model.state_dict(), like=base)
    state = {
        name: weight
        for name, weight in base.state_dict().items()
        if ".attention." not in name or name.endswith(".attention.out.weight")
    }
    with seeded(seed):
        for layer in range(config.n_layers):
            for name, weight in make_attention(config, layer).state_dict().items():
                state.setdefault(f"blocks.{layer}.attention.{name}", weight)
    return with_weights(config, state, like=base)


def random_base(config: TransformerConfig, *, seed: int) -> Transformer:
    """A multi-head model with random weights, for measuring sizes and times.

    Raises: ValueError for a seed below 0.
    """
    with seeded(seed):
        return Transformer(config).eval().requires_grad_(False)


def group_distances(weights: Tensor, group_size: int) -> tuple[float, float | None]:
    """Mean attention distance of two heads, within groups and across groups.

    The distance is the total variation (half the sum of absolute differences of two rows), averaged
    over the queries: 0 for equal rows, 1 for rows without a common key. weights: (H, T, S). The
    second result is None if all heads are in one group.
    Raises: ValueError for groups of one head, or groups that don't divide the heads evenly.
    """
    n_heads = len(weights)
    if group_size < 2 or n_heads % group_size:
        raise ValueError(f"{n_heads} heads can't be compared within groups of {group_size}")
    distances = (weights[:, None] - weights[None]).abs().sum(-1).mean(-1) / 2  # (H, H)
    group = torch.arange(n_heads) // group_size
    same = (group[:, None] == group[None]).to(weights.device)
    off_diagonal = ~torch.eye(n_heads, dtype=torch.bool, device=weights.device)
    across = distances[~same]
    within = float(distances[same & off_diagonal].mean())
    return within, float(across.mean()) if len(across) else None


def repeat_tokens(model: Transformer, token_ids: Sequence[int], n_tokens: int) -> Tensor:
    """Repeat the given tokens up to `n_tokens`: (1, n_tokens), on the model's device.

    Raises: ValueError if there are no tokens.
    """
    if not token_ids:
        raise ValueError("there are no tokens to repeat")
    ids = torch.tensor(token_ids, device=next(model.parameters()).device)
    return ids.repeat(-(-n_tokens // len(ids)))[None, :n_tokens]


@torch.inference_mode()
def filled_cache(model: Transformer, token_ids: Tensor) -> KVCache:
    """The cache of a pre-norm model after a prompt (B, T).

    The last layer stops after its attention, because the rest doesn't add to the cache.
    Raises: ValueError for token ids that don't fit the model, or for a post-norm model.
    """
    if model.config.norm_order != "pre":
        raise ValueError(f'the norm order must be "pre", got "{model.config.norm_order}"')
    cache = model.new_cache(*token_ids.shape)
    check_inputs(model.config, token_ids, cache)
    positions = torch.arange(token_ids.shape[1], device=token_ids.device)
    x = model.embed(token_ids, positions).layer_input
    forward_pass = model.new_pass(x, positions, cache)
    *layers, last = model.blocks
    for layer in layers:
        x = layer(x, forward_pass)
    assert isinstance(last, Block)
    last.attention(
        last.attention_norm(x),
        mask=forward_pass.mask,
        positions=forward_pass.rotation,
        cache=cache,
    )
    return cache
