"""What the pages keep of a step of generation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from serving import metrics

if TYPE_CHECKING:
    from attention_core import Step


@dataclass(frozen=True)
class StepTime:
    """A `Step` without its logits and records: numbers alone, so that thousands can be kept.

    Every field means what the field of that name means in `attention_core.Step`; seconds are those
    of the model call.
    """

    kind: Literal["prefill", "decode"]
    token_id: int
    logprob: float
    seconds: float
    n_new: int
    n_keys: int
    cache_length: int
    flops: int

    @classmethod
    def of(cls, step: Step) -> StepTime:
        """What is kept of a step."""
        return cls(**{field.name: getattr(step, field.name) for field in fields(cls)})

    def count(self) -> None:
        """Count it as a generated token, where a site gets it, whoever ran it (`metrics`)."""
        metrics.generated(self.seconds, cached=self.cache_length > 0)
