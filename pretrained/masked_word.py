"""Loads the masked-word head of a BERT checkpoint, which isn't part of the core's model."""

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
# Parts of the head, and their names in a checkpoint.
_TRANSFORM = {
    "dense": "transform.dense.weight",
    "dense_bias": "transform.dense.bias",
    "norm_weight": "transform.LayerNorm.weight",
    "norm_bias": "transform.LayerNorm.bias",
}


def has_masked_word_head(model: Pretrained) -> bool:
    """Whether a loaded model's checkpoint has a masked-word head; only reads file headers.

    Raises ValueError if a header is damaged.
    """
    if model.spec.architecture != "bert":
        return False
    return any(name.startswith(_PREFIX) for name in checkpoint.tensor_names(model.folder))


def masked_word_head(model: Pretrained) -> MaskedWordHead:
    """The head with the checkpoint's weights, on the model's device and in its dtype.

    Only the head's own tensors are read. As in transformers, the configuration may tie the output
    matrix to the token embedding, and `decoder.bias` to `bias`. If a different matrix or bias is
    stored, it's used untied. The output layer uses `decoder.bias` if there is one.
    Raises ValueError if a part is missing, unknown, damaged, stored twice with different values, or
    doesn't fit the model.
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
        raise ValueError("The masked-word head needs an encoder with a token embedding.")
    output: Tensor = embedding
    if not tied or _PREFIX + "decoder.weight" in stored:
        own = stored.take(_PREFIX + "decoder.weight").to(model.device, model.dtype)
        output = embedding if same_numbers(own, embedding) else own
    # transformers also ignores `bias` if there is a separate `decoder.bias`
    unknown = [name for name in stored.remaining if name != _PREFIX + "bias"]
    if unknown:
        raise ValueError(f"The masked-word head doesn't have the part {unknown[0]!r}.")
    parts = {part: tensor.to(model.device, model.dtype) for part, tensor in parts.items()}
    return MaskedWordHead(config=model.core.config, output=output, **parts)


def _read(model: Pretrained) -> dict[str, Tensor]:
    """The head's tensors by name.

    Raises ValueError if the files have changed since the core was loaded.
    """
    with unchanged(model.source):
        stored = checkpoint.read_state(model.folder)
        return {name: stored[name] for name in stored if name.startswith(_PREFIX)}
