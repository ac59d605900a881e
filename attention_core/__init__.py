"""Attention from scratch: the ladder, KV caches, a transformer and its costs.

Pure PyTorch. The user interface and the pretrained models are in other packages.
"""

from attention_core.attend import (
    AttentionRecord,
    attend,
    attention_scores,
    attention_weights,
    mask_scores,
)
from attention_core.attention import MultiHeadAttention
from attention_core.cache import KVCache, SlidingCache
from attention_core.costs.formulas import (
    cache_bytes,
    forward_flops,
    kv_cache_bytes,
    mla_cache_bytes,
)
from attention_core.generation import Step, generate, stream
from attention_core.heads import merge_heads, split_heads
from attention_core.ladder import (
    CausalAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    simple_self_attention,
)
from attention_core.masks import causal_mask, padding_mask
from attention_core.model.config import (
    PRESETS,
    LatentConfig,
    TransformerConfig,
    bert_config,
    gpt2_config,
    llama_config,
)
from attention_core.model.latent import LatentAttention
from attention_core.model.output import TransformerOutput
from attention_core.model.pass_context import Hooks
from attention_core.model.transformer import Transformer
from attention_core.model.variants import with_latent_form
from attention_core.recording import Recording, recording
from attention_core.sampling import Sampling, probabilities, sample
from attention_core.speed.batching import generate_batch, stream_batch

__all__ = [
    "PRESETS",
    "AttentionRecord",
    "CausalAttention",
    "Hooks",
    "KVCache",
    "LatentAttention",
    "LatentConfig",
    "MultiHeadAttention",
    "MultiHeadAttentionWrapper",
    "Recording",
    "Sampling",
    "SelfAttentionV1",
    "SelfAttentionV2",
    "SlidingCache",
    "Step",
    "Transformer",
    "TransformerConfig",
    "TransformerOutput",
    "attend",
    "attention_scores",
    "attention_weights",
    "bert_config",
    "cache_bytes",
    "causal_mask",
    "forward_flops",
    "generate",
    "generate_batch",
    "gpt2_config",
    "with_latent_form",
    "kv_cache_bytes",
    "llama_config",
    "mask_scores",
    "merge_heads",
    "mla_cache_bytes",
    "padding_mask",
    "probabilities",
    "recording",
    "sample",
    "simple_self_attention",
    "split_heads",
    "stream",
    "stream_batch",
]
