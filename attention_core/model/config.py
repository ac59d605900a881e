"""The configuration of a transformer, for GPT-2, BERT and Llama styles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attention_core.checks import require_fields
from attention_core.positions.scaling import RopeScaling


@dataclass(frozen=True)
class LatentConfig:
    """Sizes of multi-head latent attention, and the form in which it's computed.

    Keys and values are computed from a latent vector of `kv_rank` numbers per token, shared by all
    heads. `absorbed` selects one of two ways to compute the same result (see
    `attention_core.model.latent`).

    Source: DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1; names follow its equations.
    Raises: ValueError with the numbers for a size that isn't a whole number of at least 1, an odd
    `rope_head_size`, or a `norm_eps` that isn't positive and finite.
    """

    kv_rank: int  # d_c, width of the cached latent
    nope_head_size: int  # d_h, part of a query or key without position
    rope_head_size: int  # d_h^R, rotary part; all heads share its key
    v_head_size: int  # size of a value
    q_rank: int | None = None  # d_c', width of the query latent; None: no query latent
    absorbed: bool = False  # attend to the latents directly, without computing keys and values
    interleaved: bool = True  # rotary pairs are adjacent dimensions, as in DeepSeek's checkpoints
    norm_eps: float = 1e-6  # for the norms of the latents

    def __post_init__(self) -> None:
        """Check the sizes."""
        require_fields(self)
        if self.rope_head_size % 2:
            raise ValueError(f"rope_head_size must be even, got {self.rope_head_size}")

    @property
    def qk_head_size(self) -> int:
        """Size of one head's query or key, both parts together."""
        return self.nope_head_size + self.rope_head_size


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and parts of a `Transformer`.

    Each part is selected by its own field, not by a model name. `gpt2_config`, `bert_config` and
    `llama_config` set the fields for the three families.

    Raises: ValueError with the numbers if a field has the wrong type or is out of range, or if
    sizes don't fit together.

    >>> config = gpt2_config(d_model=64, n_layers=2, n_heads=4)
    >>> config.d_head, config.kv_heads, config.d_ff
    (16, 4, 256)
    """

    vocab_size: int
    context_length: int
    d_model: int  # C, the width
    n_layers: int
    n_heads: int  # H, query heads
    d_ff: int  # width inside the feed-forward network
    n_kv_heads: int | None = None  # H_kv, key/value heads; None: same as n_heads
    head_size: int | None = None  # D; None: d_model / n_heads
    latent: LatentConfig | None = None  # use latent attention, with these sizes
    causal: bool = True
    window: int | None = None  # how many keys a query sees, counting its own; None: all earlier
    positions: Literal["learned", "rotary"] = "learned"
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None  # slows down the rotation for longer texts
    norm: Literal["layer", "rms"] = "layer"
    norm_eps: float = 1e-5
    norm_order: Literal["pre", "post"] = "pre"
    activation: Literal["gelu", "gelu_tanh", "relu", "silu"] = "gelu_tanh"
    gated: bool = False  # add a gate to the up projection (SwiGLU)
    attention_bias: bool = True
    mlp_bias: bool = True
    n_segments: int = 0  # number of segment ("token type") embeddings
    output: Literal["tied", "separate", "none"] = "tied"  # the matrix from C to the vocabulary

    def __post_init__(self) -> None:
        """Check the sizes."""
        require_fields(self, zero_allowed=("n_segments",))
        if self.latent is not None:
            self._check_latent()
        elif self.head_size is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be divisible by n_heads ({self.n_heads}), "
                "or pass head_size"
            )
        if self.n_kv_heads is not None and self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads ({self.n_heads}) must be divisible by n_kv_heads ({self.n_kv_heads})"
            )
        if self.window is not None and not self.causal:
            raise ValueError(
                f"a window needs a causal model, got window={self.window} and causal=False"
            )
        if self.positions == "rotary" and self.d_rotary % 2:
            raise ValueError(f"rotary positions need an even head size, got {self.d_rotary}")
        if self.rope_scaling is not None:
            if self.positions != "rotary" or self.latent is not None:
                raise ValueError(
                    f"{self.rope_scaling} needs rotary positions without latent attention, "
                    f"got positions={self.positions!r} and latent={self.latent}"
                )
            self.rope_scaling.check(self.d_rotary, self.rope_theta)

    def _check_latent(self) -> None:
        for name in ("n_kv_heads", "head_size"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) can't be combined with latent attention: "
                    f"each of the {self.n_heads} heads computes keys and values from the latent"
                )
        if self.positions != "rotary":
            raise ValueError(
                f"latent attention needs rotary positions, got positions={self.positions!r}"
            )

    @property
    def d_head(self) -> int:
        """D, the size of a head; in latent attention, of its queries and keys."""
        if self.latent is not None:
            return self.latent.qk_head_size
        return self.head_size or self.d_model // self.n_heads

    @property
    def d_rotary(self) -> int:
        """Number of dimensions in a query or key that rotary positions rotate."""
        return self.d_head if self.latent is None else self.latent.rope_head_size

    @property
    def cache_shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(heads, size) of the two tensors that a cache stores per token and layer.

        They're keys and values, or in latent attention the latent and the rotary key, which all
        heads share.
        """
        if self.latent is not None:
            return (1, self.latent.kv_rank), (1, self.latent.rope_head_size)
        return (self.kv_heads, self.d_head), (self.kv_heads, self.d_head)

    @property
    def kv_heads(self) -> int:
        """H_kv, the number of key/value heads."""
        return self.n_kv_heads or self.n_heads

    @property
    def qkv_widths(self) -> tuple[int, int, int]:
        """Column counts of the queries, keys and values: H*D, H_kv*D and H_kv*D."""
        kv_width = self.kv_heads * self.d_head
        return self.n_heads * self.d_head, kv_width, kv_width

    @property
    def group_size(self) -> int:
        """Number of query heads that share one key/value head."""
        return self.n_heads // self.kv_heads


def gpt2_config(
    *,
    d_model: int,
    n_layers: int,
    n_heads: int,
    vocab_size: int = 50257,
    context_length: int = 1024,
    d_ff: int | None = None,
    norm_eps: float = 1e-5,
    tied: bool = True,
) -> TransformerConfig:
    """GPT-2: learned positions, LayerNorm before each part, tanh GELU, tied output.

    Source: Radford et al. 2019.
    """
    return TransformerConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        n_layers=n_layers,
        n_heads=n_heads,
        d_ff=d_ff or 4 * d_model,
        norm_eps=norm_eps,
        output="tied" if tied else "separate",
    )


def bert_config(
    *,
    d_model: int,
    n_layers: int,
    n_heads: int,
    d_ff: int | None = None,
    vocab_size: int = 30522,
    context_length: int = 512,
    n_segments: int = 2,
    norm_eps: float = 1e-12,
    activation: Literal["gelu", "gelu_tanh"] = "gelu",
) -> TransformerConfig:
    """BERT: bidirectional, LayerNorm after each part, erf GELU, no output matrix.

    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805.
    """
    return TransformerConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        n_layers=n_layers,
        n_heads=n_heads,
        d_ff=d_ff or 4 * d_model,
        causal=False,
        norm_eps=norm_eps,
        norm_order="post",
        activation=activation,
        n_segments=n_segments,
        output="none",
    )


def llama_config(
    *,
    vocab_size: int,
    context_length: int,
    d_model: int,
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    d_ff: int,
    head_size: int | None = None,
    rope_theta: float = 10_000.0,
    rope_scaling: RopeScaling | None = None,
    norm_eps: float = 1e-5,
    attention_bias: bool = False,
    mlp_bias: bool = False,
    tied: bool = True,
) -> TransformerConfig:
    """Llama: rotary positions, RMSNorm before each part, SwiGLU, grouped-query heads.

    Source: Touvron et al. 2023, https://arxiv.org/abs/2302.13971 and
    https://arxiv.org/abs/2307.09288.
    """
    return TransformerConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_size=head_size,
        d_ff=d_ff,
        positions="rotary",
        rope_theta=rope_theta,
        rope_scaling=rope_scaling,
        norm="rms",
        norm_eps=norm_eps,
        activation="silu",
        gated=True,
        attention_bias=attention_bias,
        mlp_bias=mlp_bias,
        output="tied" if tied else "separate",
    )


PRESETS: dict[str, TransformerConfig] = {
    "gpt2": gpt2_config(d_model=768, n_layers=12, n_heads=12),
    "gpt2-medium": gpt2_config(d_model=1024, n_layers=24, n_heads=16),
    "gpt2-large": gpt2_config(d_model=1280, n_layers=36, n_heads=20),
    "gpt2-xl": gpt2_config(d_model=1600, n_layers=48, n_heads=25),
    "bert-base-uncased": bert_config(d_model=768, n_layers=12, n_heads=12),
    "all-minilm-l6-v2": bert_config(d_model=384, n_layers=6, n_heads=12),
    "smollm2-135m": llama_config(
        vocab_size=49152,
        context_length=8192,
        d_model=576,
        n_layers=30,
        n_heads=9,
        n_kv_heads=3,
        d_ff=1536,
        rope_theta=100_000.0,
    ),
}
