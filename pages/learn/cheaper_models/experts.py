"""The part "Experts" of the page "Cheaper models": an MLP cut into experts, and a few kept."""

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
AS_THEY_LIE, BY_TOKEN = "in the model's own order", "by the token they serve"
WAYS = (AS_THEY_LIE, BY_TOKEN)
N_LIKELIEST = 4
CODE = "pages/learn/cheaper_models/experiment/experts.py"


@dataclass(frozen=True)
class ExpertSplit:
    """How an MLP is cut: the layer, the number of experts, and how its units are sorted."""

    layer: int
    n_experts: int
    way: str


@dataclass(frozen=True)
class Lengths:
    """lengths: of every expert's contribution to every token (T, E). errors: see `errors_by_count`.

    kept: which experts a token keeps (T, E), if it keeps so many.
    """

    lengths: np.ndarray
    errors: np.ndarray

    def kept(self, k: int) -> np.ndarray:
        """Which cells are among the k largest of their row."""
        places = np.argsort(-self.lengths, axis=1, kind="stable")[:, :k]
        marks = np.zeros(self.lengths.shape, dtype=bool)
        np.put_along_axis(marks, places, True, axis=1)
        return marks


def _added(run: Run, cut: ExpertSplit) -> tuple[Tensor, Tensor | None, LayerRecord]:
    """What each expert adds to each token (T, E, C), the MLP's bias, and the layer's record."""
    import torch

    from pages.learn.cheaper_models.experiment import experts

    record, block = run.layer(cut.layer), run.pretrained.core.block(cut.layer)
    hidden, down = record.mlp_hidden[0], block.mlp.down.matrix
    units = torch.arange(len(down), device=down.device)
    if cut.way == BY_TOKEN:
        units = experts.units_by_token(hidden)
    return (
        experts.contributions(hidden, down, experts.cut(units, cut.n_experts)),
        block.mlp.down.bias,
        record,
    )


@cached(key=lambda run, cut: (run.key, cut))
def lengths(run: Run, cut: ExpertSplit) -> Lengths:
    """What the experts of an MLP add to the tokens of a text. Errors as of loading a model."""
    import torch

    from pages.learn.cheaper_models.experiment.experts import errors_by_count

    with compute.slot(), torch.inference_mode():
        added, bias, record = _added(run, cut)
        errors = errors_by_count(added, record.mlp_output[0], bias)
    of_experts = torch.linalg.vector_norm(added, dim=-1)
    return Lengths(of_experts.float().cpu().numpy(), errors.float().cpu().numpy())


@cached(key=lambda run, cut, k: (run.key, cut, k))
def next_tokens(run: Run, cut: ExpertSplit, k: int) -> pd.DataFrame:
    """The likeliest next tokens: columns `next token`, `whole MLP` and `k experts` (shares)."""
    import torch

    from pages.learn.cheaper_models.experiment import experts

    model = run.pretrained
    with compute.slot(), torch.inference_mode():
        added, bias, record = _added(run, cut)
        output = experts.output_of(added, experts.kept(added, k), bias)
        whole, fewer = (
            experts.logits_behind(model.core, cut.layer, record, of).float().softmax(-1)
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
    """What is left of the MLP's multiplications, and how far its output is off."""
    from pages.learn.cheaper_models.experiment.experts import multiplications

    config = run.pretrained.core.config
    whole, few, router = multiplications(config, cut.n_experts, k)
    error = float(lengths(run, cut).errors[k - 1])
    return pd.DataFrame(
        {
            f"{k} of {cut.n_experts} experts": [
                "relative error, mean",
                "multiplications a token",
                "with the whole MLP",
                "a router would add",
            ],
            "": [f"{error:.1%}", f"{few:,} ({few / whole:.1%})", f"{whole:,}", f"{router:,}"],
        }
    )


def draw(run: Run) -> None:
    """The part of the page."""
    st.markdown(
        "**Every token pays for every weight** of an MLP, so a larger one costs more. **Experts** "
        "are pieces of it, and a token pays for a few."
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
        k = controls.number(
            "Experts that a token keeps", "cheaper_models_kept", n_experts + 1, 4, least=1
        )
        way = linked(
            st.radio,
            "Hidden units are sorted",
            WAYS,
            key="cheaper_models_sorted",
            horizontal=True,
        )
    cut = ExpertSplit(layer, n_experts, way)
    measured = lengths(run, cut)
    with left:
        picture = Map(
            np.where(measured.kept(k), measured.lengths, np.nan),
            [f"e{number}" for number in range(n_experts)],
            f"what {n_experts} experts of layer {layer} add",
            causal=False,
            scale=ColourScale(float(measured.lengths.max()), square_root=True),
            row_labels=run.tokens.labels,
            value_name="length",
            hidden_text="not among the largest",
            axes=("token", "expert"),
            row_height=24,
        )
        heatmap(picture, key="cheaper_models_map")
    with right:
        plain_table(costs(run, cut, k), "What is left")
        plain_table(next_tokens(run, cut, k), "The next token")
    st.markdown(
        f"Only layer {layer} is cut; its experts add up to its MLP, the layer's feed-forward "
        "network. This model was **not trained as experts**: here all are computed, and the "
        "longest outputs are kept. A trained **router** chooses first."
    )
    with st.expander("The error for every number of experts, the code"):
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
            ":small[If units that serve the same token share an expert, fewer are enough. The "
            "order is made from this very text.]"
        )
        source.show(CODE, "contributions")
        source.show(CODE, "kept")
        source.show(CODE, "units_by_token")
