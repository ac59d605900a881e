"""The inputs of the page "Calculator": a model and its serving setup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ui.text.formatting import format_number

if TYPE_CHECKING:
    from attention_core.costs.public_models import PublicModel

GB = 10**9  # decimal, as in the lectures
OWN = "My own shapes"  # name of the model whose shapes the visitor enters
BATCHES = [2**power for power in range(11)]
CONTEXTS = sorted({2**power for power in range(7, 21)} | {10_000, 100_000, 1_000_000})
MEMORIES = [4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 141, 192, 320, 640, 1128, 1536]  # GB
CACHE_BITS = {"float32": 32, "bfloat16, float16": 16, "8 bits": 8}
WEIGHT_BITS = CACHE_BITS | {"4 bits": 4}
LONGEST = 2**20  # tokens of the longest context


@dataclass(frozen=True)
class CacheScenario:
    """A model and its serving setup.

    model: the shapes used in the computation. published: the published shapes; they differ from
    `model` if the visitor counts it as plain multi-head attention. memory: bytes.
    """

    model: PublicModel
    published: PublicModel
    batch: int
    n_tokens: int
    cache_bits: int
    weight_bits: int
    memory: int

    @property
    def description(self) -> str:
        """The workload without the model, such as "8 sequences of 32,768 tokens, ..."."""
        sequences = "1 sequence" if self.batch == 1 else f"{self.batch:,} sequences"
        return f"{sequences} of {self.n_tokens:,} tokens, {self.cache_bits} bits per cached number"

    @property
    def bytes_per_value(self) -> int:
        """Bytes per cached number."""
        return self.cache_bits // 8

    @property
    def weights(self) -> int:
        """Bytes of all parameters."""
        from attention_core.costs.serving import weight_bytes

        return weight_bytes(self.model.n_parameters, self.weight_bits)

    @property
    def free(self) -> int:
        """Bytes left after the weights; negative if the weights don't fit."""
        return self.memory - self.weights

    def cache(self, model: PublicModel | None = None, n_tokens: int | None = None) -> int:
        """Bytes of the cache; by default for this model and context length."""
        from attention_core.costs.serving import cache_bytes

        return cache_bytes(
            model or self.model,
            n_tokens or self.n_tokens,
            batch_size=self.batch,
            bytes_per_value=self.bytes_per_value,
        )


def setting(
    published: PublicModel,
    *,
    plain: bool,
    batch: int,
    n_tokens: int,
    cache: str,
    weights: str,
    memory: int,
) -> CacheScenario:
    """Build a scenario from widget values: names of number formats, memory in GB."""
    model = published.as_multi_head() if plain else published
    return CacheScenario(
        model, published, batch, n_tokens, CACHE_BITS[cache], WEIGHT_BITS[weights], memory * GB
    )


def size(n_bytes: float) -> str:
    """Bytes with a decimal unit and four digits, such as "180.4 GB"."""
    for unit, factor in (("TB", 10**12), ("GB", GB), ("MB", 10**6), ("kB", 1000)):
        if abs(n_bytes) >= factor:
            return f"{format_number(n_bytes / factor, '.4g')} {unit}"
    return f"{format_number(n_bytes, '.4g')} bytes"
