"""The memory that a model needs, estimated before it's loaded."""

from __future__ import annotations

import math

from pretrained import checkpoint
from pretrained.sources import WeightsSource
from pretrained.specs import ModelSpec

DTYPE_BYTES = 4  # pages run every model in float32


def float32_bytes(spec: ModelSpec | None, source: WeightsSource | None) -> int:
    """Bytes of a model's weights in float32; doesn't need torch.

    The size comes from the headers of its safetensors files if they are on this machine, otherwise
    from the catalog. It's 0 if unknown.
    """
    if source is not None:
        try:
            return DTYPE_BYTES * sum(
                int(math.prod(entry["shape"]))
                for file in checkpoint.weight_files(source.path)
                for entry in checkpoint.read_header(file).values()
            )
        except ValueError:  # a different format, or damaged, which loading it will report
            pass
    return DTYPE_BYTES * spec.n_parameters if spec is not None else 0
