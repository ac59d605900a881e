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

    Every field but the last means what the field of that name means in `attention_core.Step`;
    seconds are those of the model call. stood_still: for how many seconds the whole process was
    stopped during the step (`serving.interruptions`).
    """

    kind: Literal["prefill", "decode"]
    token_id: int
    logprob: float
    seconds: float
    n_new: int
    n_keys: int
    cache_length: int
    flops: int
    stood_still: float = 0.0

    @classmethod
    def of(cls, step: Step, stood_still: float = 0.0) -> StepTime:
        """What is kept of a step."""
        names = [field.name for field in fields(cls) if hasattr(step, field.name)]
        return cls(**{name: getattr(step, name) for name in names}, stood_still=stood_still)

    def count(self) -> None:
        """Count it as a generated token, where a site gets it, whoever ran it (`metrics`)."""
        metrics.generated(self.seconds, cached=self.cache_length > 0)
