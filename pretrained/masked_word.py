"""Loading the masked-word head of a BERT checkpoint, which is no part of the core's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pretrained import checkpoint
from pretrained.load import Pretrained

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.experiments.compare.masked_word_head import MaskedWordHead

_PREFIX = "cls.predictions."
# the parts by their names in checkpoints; those of 2018 call a norm's weights gamma and beta
_PARTS = {
    "dense": ("transform.dense.weight",),
    "dense_bias": ("transform.dense.bias",),
    "norm_weight": ("transform.LayerNorm.weight", "transform.LayerNorm.gamma"),
    "norm_bias": ("transform.LayerNorm.bias", "transform.LayerNorm.beta"),
    # where both are stored, the output layer reads its own
    "output_bias": ("decoder.bias", "bias"),
}


def has_masked_word_head(model: Pretrained) -> bool:
    """Whether the checkpoint of a loaded model predicts masked words; reads file headers only.

    Raises ValueError when a header is damaged.
    """
    if model.spec.architecture != "bert":
        return False
    return any(name.startswith(_PREFIX) for name in checkpoint.tensor_names(model.folder))


def masked_word_head(model: Pretrained) -> MaskedWordHead:
    """The head with the checkpoint's weights, on the model's device and in its dtype.

    Only its own tensors are read. The output matrix is the token embedding unless the
    configuration says that it is not.
    Raises ValueError when a part is missing or damaged, or does not fit the model.
    """
    from attention_core.experiments.compare.masked_word_head import MaskedWordHead

    stored = _read(model)
    parts = {}
    for part, names in _PARTS.items():
        tensor = next((stored[name] for name in names if name in stored), None)
        if tensor is None:
            raise ValueError(f"The checkpoint has no weight '{_PREFIX}{names[0]}'.")
        parts[part] = tensor.to(model.device, model.dtype)
    output: Tensor | None = model.core.embedding
    if model.config.get("tie_word_embeddings") is False:
        if "decoder.weight" not in stored:
            raise ValueError(f"The checkpoint has no weight '{_PREFIX}decoder.weight'.")
        output = stored["decoder.weight"].to(model.device, model.dtype)
    if output is None:
        raise ValueError("A masked-word head needs the token embedding of an encoder.")
    parts["dense"] = parts["dense"].t()
    return MaskedWordHead(config=model.core.config, output=output, **parts)


def _read(model: Pretrained) -> dict[str, Tensor]:
    """The head's tensors by their names after the prefix."""
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, Tensor] = {}
    for file in checkpoint.weight_files(model.folder):
        try:
            with safe_open(file, framework="pt", device="cpu") as opened:
                for name in opened.keys():  # noqa: SIM118 (not a mapping)
                    if name.startswith(_PREFIX):
                        tensors[name.removeprefix(_PREFIX)] = opened.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{file.name} is truncated or damaged ({error}).") from error
    return tensors
