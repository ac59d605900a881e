"""The data that pages store about a generation step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from serving import metrics

if TYPE_CHECKING:
    from attention_core import Step


@dataclass(frozen=True)
class StepTime:
    """A `Step` without its logits and records, so that thousands fit into memory.

    All fields except the last have the same meaning as in `attention_core.Step`; seconds: duration
    of the model call. stalled_seconds: seconds for which the process was suspended during the step
    (`serving.interruptions`).
    """

    kind: Literal["prefill", "decode"]
    token_id: int
    logprob: float
    seconds: float
    n_new: int
    n_keys: int
    cache_length: int
    flops: int
    stalled_seconds: float = 0.0

    @classmethod
    def from_step(cls, step: Step, stalled_seconds: float = 0.0) -> StepTime:
        """Copy the fields of a step."""
        names = [field.name for field in fields(cls) if hasattr(step, field.name)]
        return cls(**{name: getattr(step, name) for name in names}, stalled_seconds=stalled_seconds)

    def count(self) -> None:
        """Count it as a generated token in this site's metrics, wherever the model ran."""
        metrics.count_token(self.seconds, cached=self.cache_length > 0)
