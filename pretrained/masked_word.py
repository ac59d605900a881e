"""Loading the masked-word head of a BERT checkpoint, which is no part of the core's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pretrained import checkpoint
from pretrained.load import Pretrained
from pretrained.options import flag
from pretrained.sources import unchanged

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.model.masked_word_head import MaskedWordHead

_PREFIX = "cls.predictions."
# Parts of the head by the names that a checkpoint stores them under.
_TRANSFORM = {
    "dense": "transform.dense.weight",
    "dense_bias": "transform.dense.bias",
    "norm_weight": "transform.LayerNorm.weight",
    "norm_bias": "transform.LayerNorm.bias",
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
    from attention_core.model.masked_word_head import MaskedWordHead
    from pretrained.weights import Checkpoint, same_numbers

    stored = Checkpoint("bert", _read(model))
    tied = flag(model.config, "tie_word_embeddings", True)
    parts = {part: stored.take(_PREFIX + name) for part, name in _TRANSFORM.items()}
    parts["dense"] = parts["dense"].transpose(0, -1)  # (d_out, d_in) -> (d_in, d_out)
    has_own_bias = not tied or _PREFIX + "decoder.bias" in stored
    parts["output_bias"] = stored.take(_PREFIX + ("decoder.bias" if has_own_bias else "bias"))
    embedding = model.core.embedding
    if embedding is None:
        raise ValueError("A masked-word head needs the token embedding of an encoder.")
    output: Tensor = embedding
    if not tied or _PREFIX + "decoder.weight" in stored:
        own = stored.take(_PREFIX + "decoder.weight").to(model.device, model.dtype)
        output = embedding if same_numbers(own, embedding) else own
    # beside a `decoder.bias` of its own, `bias` plays no part in transformers either
    unknown = [name for name in stored.remaining if name != _PREFIX + "bias"]
    if unknown:
        raise ValueError(f"The masked-word head has no place for {unknown[0]!r}.")
    parts = {part: tensor.to(model.device, model.dtype) for part, tensor in parts.items()}
    return MaskedWordHead(config=model.core.config, output=output, **parts)


def _read(model: Pretrained) -> dict[str, Tensor]:
    """The head's tensors by their names.

    Raises ValueError when the files changed after the core was loaded from them.
    """
    with unchanged(model.source):
        stored = checkpoint.read_state(model.folder)
        return {name: stored[name] for name in stored if name.startswith(_PREFIX)}
