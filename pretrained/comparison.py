"""Compares our core with the transformers model of the same weights, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained.sources import FilesChanged

# torch is imported inside functions: importing this package has to stay cheap.
if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import Transformer
    from attention_core.model.output import TransformerOutput
    from pretrained.load import Pretrained

_MAX_REASON_CHARACTERS = 150


@dataclass(frozen=True)
class Differences:
    """Largest absolute differences between our forward pass and transformers'.

    reference: the class of the transformers model. embedding: for the input of layer 0. weights:
    one per layer, over all heads, queries and keys. hidden: one for the output of each layer; if
    the model has a last norm (GPT-2, Llama), the last one is after that norm, as in transformers.
    hidden_sizes: the largest absolute value of each of these outputs, to tell rounding from a real
    difference.
    logits: None for a model without an output vocabulary.
    """

    reference: str
    embedding: float
    weights: tuple[float, ...]
    hidden: tuple[float, ...]
    hidden_sizes: tuple[float, ...]
    logits: float | None

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        rest = () if self.logits is None else (self.logits,)
        return max(self.embedding, *self.weights, *self.hidden, *rest)


@contextmanager
def _transformers_errors(folder: Path | None = None) -> Iterator[None]:
    """Turn any error of transformers into a ValueError, except for missing memory or packages.

    folder: its path is left out of the message.
    """
    import torch

    try:
        yield
    except (ImportError, MemoryError, torch.OutOfMemoryError, FilesChanged):
        raise
    # on untrusted files, transformers raises assertion, attribute and recursion errors as well as
    # its own classes
    except Exception as error:
        reason = " ".join(str(error).split())
        if folder is not None:
            reason = reason.replace(str(folder), folder.name)
        if len(reason) > _MAX_REASON_CHARACTERS:
            reason = reason[: _MAX_REASON_CHARACTERS - 1] + "…"
        raise ValueError(
            "transformers can't build or run its own model from this folder: "
            f"{type(error).__name__}: {reason}"
        ) from error


def load_reference(model: Pretrained) -> Any:
    """The transformers model with the same weights, loaded again on every call.

    Raises: ValueError with the reason if transformers can't build it; ImportError if transformers
    isn't installed.
    """
    with _transformers_errors(model.folder):
        return model.load_reference()


def compare(core: Transformer, reference: Any, ids: Sequence[int]) -> Differences:
    """Run our core and the transformers model on the same token ids, on the core's device.

    Raises: ValueError for too few or too many ids, for weights that overflow on them, or if the
    transformers model can't run.
    """
    import torch

    device = next(core.parameters()).device
    token_ids = torch.tensor([list(ids)], dtype=torch.long, device=device)
    with torch.inference_mode():
        ours = core(token_ids, record=True)
    with torch.inference_mode(), _transformers_errors():
        theirs = reference(input_ids=token_ids, output_attentions=True, output_hidden_states=True)
    return differences(ours, theirs, type(reference).__name__)


def differences(ours: TransformerOutput, theirs: Any, reference: str) -> Differences:
    """The differences of two outputs; `theirs` has `attentions`, `hidden_states` and `logits`.

    Raises: ValueError if their numbers of layers differ.
    """
    n_layers = len(ours.records)
    if (len(theirs.attentions), len(theirs.hidden_states)) != (n_layers, n_layers + 1):
        raise ValueError(
            f"the core has {n_layers} layers, but transformers returned {len(theirs.attentions)} "
            f"attention maps and {len(theirs.hidden_states)} hidden states"
        )
    states = (*ours.hidden_states[:-1], ours.hidden)
    entering, *leaving = map(largest_difference, states, theirs.hidden_states)
    logits = getattr(theirs, "logits", None)
    both_predict = ours.logits is not None and logits is not None
    return Differences(
        reference=reference,
        embedding=entering,
        weights=tuple(
            largest_difference(record.weights, weights)
            for record, weights in zip(ours.records, theirs.attentions, strict=True)
        ),
        hidden=tuple(leaving),
        hidden_sizes=tuple(float(state.abs().max()) for state in states[1:]),
        logits=largest_difference(ours.logits, logits) if both_predict else None,  # type: ignore[arg-type]
    )


def largest_difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest |ours - theirs|. Raises: ValueError for tensors of different shapes."""
    if ours.shape != theirs.shape:
        raise ValueError(f"the shapes {tuple(ours.shape)} and {tuple(theirs.shape)} differ")
    return float((ours - theirs).abs().max())  # [largest]
