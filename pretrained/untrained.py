"""GPT-2s with random weights, in the core and in transformers: for times, which need no training.

How long a step takes depends on a model's shape and not on what it has learned, so a shape whose
weights are not on a machine can be timed there all the same. The text that comes out means nothing.
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
    """The sizes of a GPT-2: L layers of H heads and width C. The vocabulary is GPT-2's own."""

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
class Untrained:
    """A core and its transformers twin with the same random weights, float32.

    It has what is needed of a `pretrained.Pretrained` to be timed.
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
        """GPT-2's own. Raises: ValueError where its vocabulary is not installed."""
        from pretrained.tokenization import gpt2

        return gpt2.gpt2()


def untrained(name: str, *, device: str | torch.device | None = None) -> Untrained:
    """One of SHAPES, the same weights every time; on CUDA by default where there is one.

    Raises: ValueError for an unknown name or a device that is not available here, ImportError when
    transformers is not installed.
    """
    from pretrained.load import quiet_transformers, usable_device
    from pretrained.weights import core_from_reference

    if name not in SHAPES:
        raise ValueError(f"there is no shape {name!r}; there are {', '.join(SHAPES)}")
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
    return Untrained(name, shape, core, reference, target)


def random_gpt2(config: Any, seed: int = 2) -> Any:
    """A `GPT2LMHeadModel` with random weights whose greedy choices are clear and varied.

    At its usual start a GPT-2 with a tied output repeats its last token for ever, for the token's
    own embedding dominates the residual stream. Larger matrices and positions let the layers
    decide. No token ends the text, so that every run is as long as it should be.
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
