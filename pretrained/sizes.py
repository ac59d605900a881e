"""How much memory a model takes once it is loaded, known before anything of it is."""

from __future__ import annotations

import math

from pretrained import checkpoint
from pretrained.sources import WeightsSource
from pretrained.specs import ModelSpec

BYTES_OF_A_NUMBER = 4  # float32, as the pages run every model


def float32_bytes(spec: ModelSpec | None, source: WeightsSource | None) -> int:
    """Bytes of a model's weights in float32.

    Read from the headers of its safetensors files where they are on this machine, else what the
    catalogue says; 0 where neither tells. Needs no torch.
    """
    if source is not None:
        try:
            return BYTES_OF_A_NUMBER * sum(
                int(math.prod(entry["shape"]))
                for file in checkpoint.weight_files(source.path)
                for entry in checkpoint.read_header(file).values()
            )
        except ValueError:  # bundled in another form, or damaged: loading it says so
            pass
    return BYTES_OF_A_NUMBER * spec.n_parameters if spec is not None else 0
