"""GPT-2 models with random weights, in the core and in transformers, for time measurements.

The time of a step depends on a model's shape and not on its weights. So we can time a shape even if
its weights aren't on the machine, although the generated text is meaningless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

# torch and transformers are imported inside functions: importing this package has to stay cheap.
if TYPE_CHECKING:
    import torch

    from attention_core import Transformer
    from pretrained.tokenization.tokens import Tokenizer


@dataclass(frozen=True)
class Shape:
    """The sizes of a GPT-2 model with GPT-2's own vocabulary."""

    title: str
    n_layers: int
    n_heads: int
    width: int
    context_length: int = 1024


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "random-gpt2-124m": Shape("GPT-2 124M shape, random weights", 12, 12, 768),
        "random-tiny": Shape("2 layers of width 64, random weights", 2, 4, 64),
    }
)


@dataclass(frozen=True, eq=False)
class UntrainedModel:
    """A core and a transformers model with the same random weights, float32.

    It has the attributes of `pretrained.Pretrained` that measurements need.
    """

    name: str
    shape: Shape
    core: Transformer
    reference: Any
    device: torch.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        import torch

        return torch.float32

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """GPT-2's tokenizer. Raises: ValueError if its vocabulary isn't installed."""
        from pretrained.tokenization import gpt2

        return gpt2.gpt2()


def untrained(name: str, *, device: str | torch.device | None = None) -> UntrainedModel:
    """A model with one of SHAPES, always with the same weights; on CUDA by default if available.

    Raises: ValueError for an unknown name or an unavailable device; ImportError if transformers
    isn't installed.
    """
    from pretrained.load import quiet_transformers, usable_device
    from pretrained.weights import core_from_reference

    if name not in SHAPES:
        raise ValueError(f"unknown shape {name!r}; choose one of {', '.join(SHAPES)}")
    shape = SHAPES[name]
    with quiet_transformers() as transformers:
        config = transformers.GPT2Config(
            n_layer=shape.n_layers,
            n_head=shape.n_heads,
            n_embd=shape.width,
            n_positions=shape.context_length,
        )
    target = usable_device(device)
    reference = random_gpt2(config).to(target)
    core = core_from_reference(reference).to(target).eval().requires_grad_(False)
    return UntrainedModel(name, shape, core, reference, target)


def random_gpt2(config: Any, seed: int = 2) -> Any:
    """A `GPT2LMHeadModel` with random weights whose greedy choices are clear and varied.

    With the usual initialization, a GPT-2 with tied output repeats its last token forever, because
    the token's own embedding dominates the residual stream. Scaling up the matrices and positions
    gives the layers more influence. No token ends the text, so every run has the requested length.
    """
    import torch

    from attention_core.seeding import seeded
    from pretrained.load import quiet_transformers

    with quiet_transformers() as transformers:
        model_class = transformers.GPT2LMHeadModel
    config.eos_token_id = config.bos_token_id = None
    config.pad_token_id = 0
    with seeded(seed):
        model: Any = model_class(config)
    model.eval().requires_grad_(False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("wpe.weight"):
                parameter.mul_(10.0)
            elif ".h." in name and parameter.ndim == 2:
                parameter.mul_(5.0)
    return model
