"""Section "Experts" of the page "Cheaper models": an MLP split into experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.learn.cheaper_models import charts
from serving import compute, models
from serving.cache import cached
from serving.runs import Run
from serving.token_text import pieces
from ui.canvas.heatmap import ColourScale, Map, heatmap
from ui.charts.show import show
from ui.export import source
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.model.block import LayerRecord

NAME = "Experts"
NUMBERS = (4, 8, 16, 32)
IN_MODEL_ORDER, BY_TOKEN = "in the model's own order", "by the token they serve"
WAYS = (IN_MODEL_ORDER, BY_TOKEN)
N_LIKELIEST = 4
CODE = "pages/learn/cheaper_models/experiment/experts.py"


@dataclass(frozen=True)
class ExpertSplit:
    """How an MLP is split: layer, number of experts, and order of its units."""

    layer: int
    n_experts: int
    way: str


@dataclass(frozen=True)
class ContributionLengths:
    """Size of every expert's contribution to every token.

    lengths: (T, E). errors: (E,), see `errors_by_count`.
    """

    lengths: np.ndarray
    errors: np.ndarray

    def top_k_mask(self, k: int) -> np.ndarray:
        """A mask (T, E) of the k largest contributions in each row."""
        places = np.argsort(-self.lengths, axis=1, kind="stable")[:, :k]
        marks = np.zeros(self.lengths.shape, dtype=bool)
        np.put_along_axis(marks, places, True, axis=1)
        return marks


def _contributions(run: Run, cut: ExpertSplit) -> tuple[Tensor, Tensor | None, LayerRecord]:
    """Contributions of the experts (T, E, C), the MLP's bias, the layer's record."""
    import torch

    from pages.learn.cheaper_models.experiment import experts

    record, block = run.layer(cut.layer), run.pretrained.core.block(cut.layer)
    hidden, down = record.mlp_hidden[0], block.mlp.down.matrix
    units = torch.arange(len(down), device=down.device)
    if cut.way == BY_TOKEN:
        units = experts.units_by_token(hidden)
    return (
        experts.contributions(hidden, down, experts.split_units(units, cut.n_experts)),
        block.mlp.down.bias,
        record,
    )


@cached(key=lambda run, cut: (run.key, cut))
def lengths(run: Run, cut: ExpertSplit) -> ContributionLengths:
    """Measure what each expert adds to each token. Errors: as in loading a model."""
    import torch

    from pages.learn.cheaper_models.experiment.experts import errors_by_count

    with compute.slot(), torch.inference_mode():
        added, bias, record = _contributions(run, cut)
        errors = errors_by_count(added, record.mlp_output[0], bias)
    of_experts = torch.linalg.vector_norm(added, dim=-1)
    return ContributionLengths(of_experts.float().cpu().numpy(), errors.float().cpu().numpy())


@cached(key=lambda run, cut, k: (run.key, cut, k))
def next_tokens(run: Run, cut: ExpertSplit, k: int) -> pd.DataFrame:
    """Most likely next tokens, with the whole MLP and with k experts."""
    import torch

    from pages.learn.cheaper_models.experiment import experts

    model = run.pretrained
    with compute.slot(), torch.inference_mode():
        added, bias, record = _contributions(run, cut)
        output = experts.expert_output(added, experts.top_k_mask(added, k), bias)
        whole, fewer = (
            experts.logits_after(model.core, cut.layer, record, of).float().softmax(-1)
            for of in (record.mlp_output, output[None])
        )
    likeliest = whole.topk(N_LIKELIEST).indices
    return pd.DataFrame(
        {
            "next token": pieces(model.tokenizer, likeliest.tolist()),
            "whole MLP": whole[likeliest].tolist(),
            f"{k} of {cut.n_experts}": fewer[likeliest].tolist(),
        }
    )


def costs(run: Run, cut: ExpertSplit, k: int) -> pd.DataFrame:
    """Multiplications and error with k experts, compared with the whole MLP."""
    from pages.learn.cheaper_models.experiment.experts import multiplications

    config = run.pretrained.core.config
    whole, few, router = multiplications(config, cut.n_experts, k)
    error = float(lengths(run, cut).errors[k - 1])
    return pd.DataFrame(
        {
            f"{k} of {cut.n_experts} experts": [
                "mean relative error",
                "multiplications per token",
                "same for the whole MLP",
                "extra for a router",
            ],
            "": [f"{error:.1%}", f"{few:,} ({few / whole:.1%})", f"{whole:,}", f"{router:,}"],
        }
    )


def draw(run: Run) -> None:
    """Draw the section."""
    st.markdown(
        "An ordinary MLP uses **every weight for every token**. If it's split into **experts**, "
        "each token uses only a few of them."
    )
    left, right = st.columns([3, 2], gap="large")
    with right:
        of_layer, of_experts = st.columns(2, gap="medium")
        n_layers = models.spec(run.model).n_layers
        with of_layer:
            layer = controls.number(
                "Layer",
                "cheaper_models_layer",
                n_layers,
                max(n_layers // 2 - 1, 0),
                part="layer",
            )
        with of_experts:
            n_experts = linked(
                st.select_slider, "Experts", NUMBERS, 16, key="cheaper_models_experts"
            )
        k = controls.number("Experts per token", "cheaper_models_kept", n_experts + 1, 4, minimum=1)
        way = linked(
            st.radio,
            "Order of the hidden units",
            WAYS,
            key="cheaper_models_sorted",
            horizontal=True,
        )
    cut = ExpertSplit(layer, n_experts, way)
    measurements = lengths(run, cut)
    with left:
        picture = Map(
            np.where(measurements.top_k_mask(k), measurements.lengths, np.nan),
            [f"e{number}" for number in range(n_experts)],
            f"contributions of {n_experts} experts in layer {layer}",
            causal=False,
            scale=ColourScale(float(measurements.lengths.max()), square_root=True),
            row_labels=run.tokens.labels,
            value_name="length",
            hidden_text="not among the largest",
            axes=("token", "expert"),
            row_height=24,
        )
        heatmap(picture, key="cheaper_models_map")
    with right:
        plain_table(costs(run, cut, k), "Cost and error")
        plain_table(next_tokens(run, cut, k), "Next token")
    st.markdown(
        f"Only the MLP of layer {layer} is split, so the prediction often changes little. This "
        "model **wasn't trained with experts**: we compute them all and keep the largest. In a "
        "real model a trained **router** picks the experts first."
    )
    with st.expander("Error by number of experts, and the code"):
        tables = [
            pd.DataFrame(
                {
                    "kept": range(1, n_experts + 1),
                    "error": lengths(run, ExpertSplit(layer, n_experts, sorting)).errors,
                    "units": sorting,
                }
            )
            for sorting in WAYS
        ]
        show(charts.errors_chart, pd.concat(tables), WAYS, k, key="cheaper_models_errors")
        st.markdown(
            ":small[Fewer experts are enough if units that respond to the same token share an "
            "expert. This order was computed from this text.]"
        )
        source.show(CODE, "contributions")
        source.show(CODE, "top_k_mask")
        source.show(CODE, "units_by_token")
