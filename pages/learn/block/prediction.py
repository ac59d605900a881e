"""Predictions of a decoder: after each layer (logit lens) and after the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pages.learn.block.stream import run
from serving import compute, models, token_text
from serving.cache import cached
from ui.text.formatting import percent, plural

if TYPE_CHECKING:
    from attention_core.analysis.residual_stream import LensPredictions

PARIS = "The capital of France is"


@dataclass(frozen=True)
class LensTable:
    """The logit lens at one position: top tokens by layer, and the final token."""

    table: pd.DataFrame
    final: str
    probability: np.ndarray
    first_layer: int
    stable_from: int

    @property
    def stability_note(self) -> str:
        """What happens after the final token first leads, unless that's the last layer."""
        if self.first_layer == len(self.probability) - 1:
            return ""
        if self.stable_from == self.first_layer:
            return " and stays the most likely"
        return f", falls back, and leads for good after {plural(self.stable_from, 'layer')}"

    @property
    def by_layer(self) -> pd.DataFrame:
        """The final token's probability: columns `layers` (passed), `probability`."""
        layers = range(len(self.probability))
        return pd.DataFrame({"layers": layers, "probability": self.probability.astype(float)})


@dataclass(frozen=True)
class LastRowPrediction:
    """Top next tokens, and the cost of the last row compared with all rows."""

    tokens: tuple[str, ...]
    probabilities: np.ndarray
    difference: float
    largest: float
    rows: pd.DataFrame
    ratio: float


@cached(key=lambda name, text, position: (*models.key(name), text, position))
def lens(name: str, text: str, position: int) -> LensTable:
    """The logit lens of a decoder at a position. Errors: as in `run`."""
    import torch

    from attention_core.analysis.residual_stream import lens_predictions, logit_lens

    stream, model = run(name, text), models.get(name)
    states = stream.run.tensors.states[:, position].to(model.device, model.dtype)
    with compute.slot(), torch.inference_mode():
        predictions: LensPredictions = lens_predictions(logit_lens(model.core, states), 5)
    *pieces, final = token_text.pieces(
        model.tokenizer, [*predictions.ids.flatten().tolist(), predictions.final]
    )
    tokens = np.array(pieces, dtype=object).reshape(predictions.ids.shape)
    table: dict[str, Any] = {"layers passed": range(len(predictions.ids))}
    for rank in range(predictions.ids.shape[1]):
        table[f"{rank + 1}."] = [
            f"{token} {percent(probability)}"
            for token, probability in zip(
                tokens[:, rank], predictions.probabilities[:, rank].tolist(), strict=True
            )
        ]
    table["rank of the final token"] = (predictions.final_rank + 1).tolist()
    probability = predictions.final_probability.float().cpu().numpy()
    table["its probability"] = probability
    return LensTable(
        table=pd.DataFrame(table),
        final=final,
        probability=probability,
        first_layer=predictions.first_layer,
        stable_from=predictions.stable_from,
    )


@cached(key=lambda name, text: (*models.key(name), text))
def next_token(name: str, text: str) -> LastRowPrediction:
    """A decoder's prediction after a text. Errors: as in `run`."""
    import torch

    from attention_core import forward_flops
    from attention_core.analysis.residual_stream import last_row_logits, logit_lens

    stream, model = run(name, text), models.get(name)
    core = model.core
    if core.unembedding is None:
        raise ValueError(f"{name} has no output matrix, so it can't predict tokens.")
    last = stream.run.state(core.config.n_layers)  # output of the last layer, before the final norm
    places = torch.arange(len(stream.labels), device=last.device)
    with compute.slot(), torch.inference_mode():
        hidden, _ = core.run_layers(last, core.new_pass(last, places), first=core.config.n_layers)
        logits = logit_lens(core, last)[0]
        alone = last_row_logits(core, hidden[0])
        difference = float((alone - logits[-1]).abs().max())
        top = alone.float().softmax(dim=-1).topk(10)
    n, config = len(stream.labels), model.core.config
    flops = {
        "all rows, all logits": forward_flops(config, n, n, n_logits=n),
        "all rows, last logits only": forward_flops(config, n, n),
        "last row only, with a KV cache": forward_flops(config, 1, n),
    }
    most = flops["all rows, all logits"]
    return LastRowPrediction(
        tokens=token_text.pieces(model.tokenizer, top.indices.tolist()),
        probabilities=top.values.cpu().numpy(),
        difference=difference,
        largest=float(logits[-1].abs().max()),
        rows=pd.DataFrame(
            {
                "computed": list(flops),
                "GFLOP": [f"{count / 1e9:.3f}" for count in flops.values()],
                "share": [f"{count / most:.1%}" for count in flops.values()],
            }
        ),
        ratio=most / flops["last row only, with a KV cache"],
    )
