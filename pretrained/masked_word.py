"""Loading the masked-word head of a BERT checkpoint, which is no part of the core's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pretrained import checkpoint
from pretrained.load import Pretrained
from pretrained.options import flag
from pretrained.sources import unchanged

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.experiments.compare.masked_word_head import MaskedWordHead

_PREFIX = "cls.predictions."
# Parts of the head by the names that a checkpoint stores them under.
_TRANSFORM = {
    "dense": "transform.dense.weight",
    "dense_bias": "transform.dense.bias",
    "norm_weight": "transform.LayerNorm.weight",
    "norm_bias": "transform.LayerNorm.bias",
}
# Checkpoints of 2018 call the weight and bias of a norm gamma and beta.
_OLD_NAMES = {
    "transform.LayerNorm.gamma": "transform.LayerNorm.weight",
    "transform.LayerNorm.beta": "transform.LayerNorm.bias",
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

    Only its own tensors are read. As in transformers, the configuration may tie the output matrix
    to the token embedding and the bias `decoder.bias` to `bias`, and a stored matrix or bias that
    differs is used untied. The output layer reads `decoder.bias` where there is one.
    Raises ValueError when a part is missing, unknown, damaged, stored twice with different numbers,
    or doesn't fit the model.
    """
    from attention_core.experiments.compare.masked_word_head import MaskedWordHead
    from pretrained.weights import same_numbers

    stored = _with_current_names(_read(model))
    tied = flag(model.config, "tie_word_embeddings", True)
    parts = {part: _take(stored, name) for part, name in _TRANSFORM.items()}
    parts["dense"] = parts["dense"].transpose(0, -1)  # (d_out, d_in) -> (d_in, d_out)
    bias = stored.pop("bias", None)
    if not tied or "decoder.bias" in stored:
        parts["output_bias"] = _take(stored, "decoder.bias")
    elif bias is not None:
        parts["output_bias"] = bias
    else:
        raise ValueError(f"The checkpoint has no weight '{_PREFIX}bias'.")
    embedding = model.core.embedding
    if embedding is None:
        raise ValueError("A masked-word head needs the token embedding of an encoder.")
    output: Tensor = embedding
    if not tied or "decoder.weight" in stored:
        own = _take(stored, "decoder.weight").to(model.device, model.dtype)
        output = embedding if same_numbers(own, embedding) else own
    if stored:
        raise ValueError(f"The masked-word head has no place for '{_PREFIX}{min(stored)}'.")
    parts = {part: tensor.to(model.device, model.dtype) for part, tensor in parts.items()}
    return MaskedWordHead(config=model.core.config, output=output, **parts)


def _with_current_names(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    from pretrained.weights import same_numbers

    renamed: dict[str, Tensor] = {}
    for key, tensor in stored.items():
        name = _OLD_NAMES.get(key, key)
        if name in renamed and not same_numbers(renamed[name], tensor):
            raise ValueError(
                f"The checkpoint stores '{_PREFIX}{name}' twice, with different numbers."
            )
        renamed[name] = tensor
    return renamed


def _take(stored: dict[str, Tensor], name: str) -> Tensor:
    if name not in stored:
        raise ValueError(f"The checkpoint has no weight '{_PREFIX}{name}'.")
    return stored.pop(name)


def _read(model: Pretrained) -> dict[str, Tensor]:
    """The head's tensors by their names after the prefix.

    Raises ValueError when the files changed after the core was loaded from them.
    """
    with unchanged(model.source):
        stored = checkpoint.read_state(model.folder)
        return {
            name.removeprefix(_PREFIX): stored[name] for name in stored if name.startswith(_PREFIX)
        }
