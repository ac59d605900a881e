"""Sizes of public models, as published, and two examples from the lecture.

Parameters are computed from the published sizes and count the weight matrices. Norms and most
biases, less than a thousandth, are left out. GPT-3's counts are taken from its paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_HUB = "https://huggingface.co/{}/blob/main/config.json"
_GPT3 = "https://arxiv.org/abs/2005.14165"


@dataclass(frozen=True)
class PublicModel:
    """The sizes of one decoder, as published at `source`.

    `n_heads` * `head_size` may differ from `d_model`.
    n_active_parameters: for a mixture of experts, the parameters that one token uses.
    window: tokens that a local layer keeps; `n_global_layers` layers have no window.
    latent_size, rope_size: for latent attention, the sizes cached per token instead of keys and
    values; `head_size` is then the size of the expanded heads without the rotary part.
    Raises: ValueError with the numbers for sizes below 1 or that don't fit together.
    """

    name: str
    family: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_size: int
    d_model: int
    n_parameters: int
    context_length: int
    source: str
    n_active_parameters: int | None = None
    window: int | None = None
    n_global_layers: int = 0
    latent_size: int | None = None
    rope_size: int | None = None

    def __post_init__(self) -> None:
        for name in (
            "n_layers",
            "n_heads",
            "n_kv_heads",
            "head_size",
            "d_model",
            "n_parameters",
            "context_length",
            "n_active_parameters",
            "window",
            "latent_size",
            "rope_size",
        ):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"{self.n_heads} query heads can't share {self.n_kv_heads} key/value heads evenly:"
                f" choose a number that divides {self.n_heads}"
            )
        if not 0 <= self.n_global_layers <= self.n_layers:
            raise ValueError(
                f"n_global_layers must be 0 to {self.n_layers}, got {self.n_global_layers}"
            )
        if (self.latent_size is None) != (self.rope_size is None):
            raise ValueError(
                "latent_size and rope_size must be given together: "
                f"got {self.latent_size} and {self.rope_size}"
            )
        if self.latent_size is not None and self.window is not None:
            raise ValueError(
                "a window can't be combined with latent attention here: "
                f"got a window of {self.window} and a latent_size of {self.latent_size}"
            )

    @property
    def form(self) -> str:
        """Kind of attention: "MHA", "GQA", "MQA" or "MLA", with ", window" if it has one."""
        if self.latent_size is not None:
            return "MLA"
        shared = "MHA" if self.n_kv_heads == self.n_heads else "GQA"
        shared = "MQA" if self.n_kv_heads == 1 < self.n_heads else shared
        return shared if self.window is None else f"{shared}, window"

    @property
    def active_parameters(self) -> int:
        """Number of parameters that one token uses."""
        return self.n_active_parameters or self.n_parameters

    def as_multi_head(self) -> PublicModel:
        """The same heads as multi-head attention, with every token cached."""
        return replace(
            self,
            n_kv_heads=self.n_heads,
            window=None,
            n_global_layers=0,
            latent_size=None,
            rope_size=None,
        )


def _gpt2(size: str, repository: str, layers: int, heads: int, width: int, n: int) -> PublicModel:
    return PublicModel(
        f"GPT-2 {size}",
        "GPT-2",
        layers,
        heads,
        heads,
        64,
        width,
        n,
        1024,
        _HUB.format(f"openai-community/{repository}"),
    )


def _gpt3(size: str, n: int, layers: int, width: int, heads: int, head_size: int) -> PublicModel:
    return PublicModel(
        f"GPT-3 {size}", "GPT-3", layers, heads, heads, head_size, width, n, 2048, _GPT3
    )


# As printed in table 2.1 of the paper. For XL (24 * 128 = 3072, not 2048) and 13B (40 * 128 = 5120,
# not 5140), heads times head size isn't the width. The cache size depends on the heads.
GPT3_FAMILY = (
    _gpt3("Small", 125_000_000, 12, 768, 12, 64),
    _gpt3("Medium", 350_000_000, 24, 1024, 16, 64),
    _gpt3("Large", 760_000_000, 24, 1536, 16, 96),
    _gpt3("XL", 1_300_000_000, 24, 2048, 24, 128),
    _gpt3("2.7B", 2_700_000_000, 32, 2560, 32, 80),
    _gpt3("6.7B", 6_700_000_000, 32, 4096, 32, 128),
    _gpt3("13B", 13_000_000_000, 40, 5140, 40, 128),
    _gpt3("175B", 175_000_000_000, 96, 12288, 96, 128),
)


def _hub(
    name: str,
    repository: str,
    layers: int,
    heads: tuple[int, int, int],
    width: int,
    n: int,
    context: int,
    **more: int,
) -> PublicModel:
    """A model from the Hub; `heads` are query heads, key/value heads and head size."""
    family = name.replace("-", " ").split()[0].rstrip("0123456789.")
    return PublicModel(
        name, family, layers, *heads, width, n, context, _HUB.format(repository), **more
    )


PUBLIC_MODELS = (
    _gpt2("small", "gpt2", 12, 12, 768, 124_439_808),
    _gpt2("medium", "gpt2-medium", 24, 16, 1024, 354_823_168),
    _gpt2("large", "gpt2-large", 36, 20, 1280, 774_030_080),
    _gpt2("XL", "gpt2-xl", 48, 25, 1600, 1_557_611_200),
    *GPT3_FAMILY,
    _hub("Llama-2 7B", "meta-llama/Llama-2-7b-hf", 32, (32, 32, 128), 4096, 6_738_149_376, 4096),
    _hub("Llama-2 13B", "meta-llama/Llama-2-13b-hf", 40, (40, 40, 128), 5120, 13_015_449_600, 4096),
    _hub("Llama-2 70B", "meta-llama/Llama-2-70b-hf", 80, (64, 8, 128), 8192, 68_975_329_280, 4096),
    _hub("Llama-3 8B", "meta-llama/Meta-Llama-3-8B", 32, (32, 8, 128), 4096, 8_029_995_008, 8192),
    _hub(
        "Llama-3 70B", "meta-llama/Meta-Llama-3-70B", 80, (64, 8, 128), 8192, 70_552_387_584, 8192
    ),
    _hub(
        "Llama-3.1 8B", "meta-llama/Meta-Llama-3.1-8B", 32, (32, 8, 128), 4096, 8_029_995_008,
        131_072,
    ),
    _hub(
        "Llama-3.1 405B", "meta-llama/Meta-Llama-3.1-405B", 126, (128, 8, 128), 16384,
        405_849_243_648, 131_072,
    ),
    _hub(
        "Mistral 7B v0.1", "mistralai/Mistral-7B-v0.1", 32, (32, 8, 128), 4096, 7_241_465_856,
        32_768, window=4096,
    ),
    _hub(
        "Mixtral 8x7B", "mistralai/Mixtral-8x7B-v0.1", 32, (32, 8, 128), 4096, 46_702_526_464,
        32_768, n_active_parameters=12_879_659_008,
    ),
    _hub("Gemma 7B", "google/gemma-7b", 28, (16, 16, 256), 3072, 8_537_505_792, 8192),
    # every second layer is global; the others see the last 4096 tokens
    _hub(
        "Gemma-2 9B", "google/gemma-2-9b", 42, (16, 8, 256), 3584, 9_241_100_288, 8192,
        window=4096, n_global_layers=21,
    ),
    # every sixth layer is global
    _hub(
        "Gemma-3 27B", "google/gemma-3-27b-it", 62, (32, 16, 128), 5376, 27_007_991_808, 131_072,
        window=1024, n_global_layers=10,
    ),
    _hub("Qwen2.5 7B", "Qwen/Qwen2.5-7B", 28, (28, 4, 128), 3584, 7_615_283_200, 131_072),
    _hub("Qwen2.5 72B", "Qwen/Qwen2.5-72B", 80, (64, 8, 128), 8192, 72_704_065_536, 131_072),
    _hub("Qwen3 0.6B", "Qwen/Qwen3-0.6B", 28, (16, 8, 128), 1024, 595_984_384, 40_960),
    _hub("Qwen3 8B", "Qwen/Qwen3-8B", 36, (32, 8, 128), 4096, 8_190_427_136, 40_960),
    _hub(
        "DeepSeek-V2", "deepseek-ai/DeepSeek-V2", 60, (128, 128, 128), 5120, 235_740_692_480,
        163_840, n_active_parameters=21_375_057_920, latent_size=512, rope_size=64,
    ),
    _hub(
        "DeepSeek-V3", "deepseek-ai/DeepSeek-V3", 61, (128, 128, 128), 7168, 671_025_397_760,
        163_840, n_active_parameters=37_551_276_032, latent_size=512, rope_size=64,
    ),
    _hub("SmolLM2 135M", "HuggingFaceTB/SmolLM2-135M", 30, (9, 3, 64), 576, 134_479_872, 8192),
)  # fmt: skip


@dataclass(frozen=True)
class LectureExample:
    """An example from the course notes: its sizes and the printed result."""

    model: PublicModel
    batch_size: int
    n_tokens: int
    printed: str


_NOTES = 'course notes, "KV cache size"'

# The notes give 48 layers and a width of 7168. That matches 56 heads of 128, for example.
LECTURE_30B = LectureExample(
    PublicModel(
        "The lecture's 30B", "lecture", 48, 56, 56, 128, 7168, 30_000_000_000, 2048, _NOTES
    ),
    batch_size=128,
    n_tokens=1024,
    printed="180 GB",
)
# The notes count DeepSeek-V3 as if every head cached its own keys and values.
LECTURE_DEEPSEEK = LectureExample(
    next(model for model in PUBLIC_MODELS if model.name == "DeepSeek-V3").as_multi_head(),
    batch_size=1,
    n_tokens=100_000,
    printed="400 GB",
)
