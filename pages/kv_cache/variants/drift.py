"""A model with averaged key/value heads, and one trained with shared heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.kv_cache.variants import charts
from pretrained import CatalogEntry
from serving import compute, models, token_text
from serving import runs as attention
from serving.cache import cached
from serving.limits import MAX_DRIFT_TOKENS
from serving.prompts import prepare_prompt
from serving.runs import Run
from ui.canvas.heatmap import ColourScale, DivergingScale, Map, heatmap
from ui.charts.show import show as show_chart
from ui.export import source, tables
from ui.text.isolated import isolated
from ui.widgets import controls

if TYPE_CHECKING:
    from pages.kv_cache.variants.experiment.pooling_drift import HiddenStateDrift

MAX_MAPS = 4  # heads drawn per group
MODEL = "variants_model"
AVERAGED_HEADS = "A trained model with averaged heads"
SMOLLM2 = "smollm2-135m-instruct"


@dataclass(frozen=True)
class PooledModel:
    """One model on one text, pooled to fewer and fewer key/value heads.

    The first entry of every field is the unchanged model. Arrays are as in
    `pooling_drift.HiddenStateDrift`; `tokens` contains labels and `likeliest` token texts.
    """

    title: str
    n_heads: int
    groups: tuple[int, ...]
    tokens: tuple[str, ...]
    cosine: np.ndarray  # (groups, T)
    relative: np.ndarray  # (groups, T)
    attention: np.ndarray  # (groups, L, H)
    divergence: tuple[float | None, ...]
    likeliest: tuple[str | None, ...]
    same_token: tuple[bool | None, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.cosine.nbytes + self.relative.nbytes + self.attention.nbytes

    @property
    def has_predictions(self) -> bool:
        """Whether the model predicts the next token."""
        return self.divergence[0] is not None

    @property
    def table(self) -> pd.DataFrame:
        """One row per number of key/value heads."""
        frame = pd.DataFrame(
            {
                "key/value heads": self.groups,
                "query heads per group": [self.n_heads // g for g in self.groups],
                "mean 1 − cosine": self.cosine.mean(1),
                "mean difference": self.relative.mean(1),
                "largest (token)": self.relative.max(1),
                "attention moved": self.attention.mean((1, 2)),
                "most moved (head)": self.attention.max((1, 2)),
            }
        )
        if self.has_predictions:
            frame["divergence, nats"] = self.divergence
            frame["most likely next"] = self.likeliest
            frame["unchanged"] = self.same_token
        return frame

    @property
    def rows(self) -> pd.DataFrame:
        """Rows of the chart: means, with the range over all tokens or heads."""
        rows = []
        for what, values in (
            (charts.HIDDEN, self.relative),
            (charts.ATTENTION, self.attention.reshape(len(self.groups), -1)),
        ):
            for heads, row in zip(self.groups, values, strict=True):
                ends = {"low": float(row.min()), "high": float(row.max())}
                rows.append({"heads": heads, "what": what, "value": float(row.mean()), **ends})
        return pd.DataFrame(rows)

    @property
    def by_token(self) -> pd.DataFrame:
        """Relative difference of every token, one column per number of key/value heads."""
        columns: dict[str, Any] = {"position": range(len(self.tokens)), "token": self.tokens}
        for heads, row in zip(self.groups, self.relative, strict=True):
            columns[str(heads)] = row
        return pd.DataFrame(columns)


@cached(key=lambda name, text: (*models.key(name), text))
def pool_heads(name: str, text: str) -> PooledModel:
    """Run a model pooled to each divisor of its key/value heads; cached.

    Raises: OverLimit if the text is too long; ValueError if it contains no token.
    """
    import torch

    from pages.kv_cache.variants.experiment.forms import divisors
    from pages.kv_cache.variants.experiment.pool_kv_heads import mean_pooled_kv_heads
    from pages.kv_cache.variants.experiment.pooling_drift import drift, outcome

    model = models.get(name)
    tokens = prepare_prompt(model, text, MAX_DRIFT_TOKENS, "this comparison").tokens
    ids = torch.tensor(tokens.ids, device=model.device)
    with compute.slot():
        before = outcome(model.core, ids)
    changes: list[HiddenStateDrift] = []
    for heads in divisors(model.core.config.kv_heads):
        fewer = mean_pooled_kv_heads(model.core, heads, share=True)
        with compute.slot():
            changes.append(drift(before, outcome(fewer, ids), heads))

    def piece(change: HiddenStateDrift) -> str | None:
        if change.likeliest is None:
            return None
        return token_text.piece(model.tokenizer, change.likeliest[1])

    return PooledModel(
        title=model.spec.title,
        n_heads=model.core.config.n_heads,
        groups=tuple(change.n_kv_heads for change in changes),
        tokens=tuple(tokens.labels),
        cosine=torch.stack([change.cosine for change in changes]).cpu().numpy(),
        relative=torch.stack([change.relative for change in changes]).cpu().numpy(),
        attention=torch.stack([change.attention for change in changes]).float().cpu().numpy(),
        divergence=tuple(change.divergence for change in changes),
        likeliest=tuple(piece(change) for change in changes),
        same_token=tuple(
            None if change.likeliest is None else change.likeliest[0] == change.likeliest[1]
            for change in changes
        ),
    )


def pooling_sentence(pooling: PooledModel) -> str:
    """A line of plain text about what pooling to a single head changed."""
    if len(pooling.groups) == 1:
        return f"{pooling.title} has only one key/value head, so there's nothing to pool."
    last = -1
    line = (
        f"Pooling {pooling.title} from {pooling.groups[0]} key/value heads to "
        f"{pooling.groups[last]} moves its last hidden states by "
        f"{pooling.relative[last].mean():.0%} of their length on average (cosine with the "
        f"originals: {1 - pooling.cosine[last].mean():.3f}). The heads move "
        f"{pooling.attention[last].mean():.0%} of their attention to other tokens."
    )
    if not pooling.has_predictions:
        return line
    before, after = (isolated(str(pooling.likeliest[i])) for i in (0, last))
    prediction = (
        f"The most likely next token is still “{before}”"
        if pooling.same_token[last]
        else f"The most likely next token changes from “{before}” to “{after}”"
    )
    return f"{line} {prediction} (divergence: {pooling.divergence[last]:.2f} nats)."


def show_pooled(name: str, text: str) -> None:
    """Show one model's drift: a sentence, the chart, the tables and the code."""
    st.markdown(
        "You can turn a multi-head model into a grouped one by averaging the key and value "
        "matrices of each group. The GQA paper then continues training for 5% of the original "
        "steps. **Here nothing is trained**, so you see the damage that pooling alone does."
    )
    with st.spinner("Pooling the heads …", show_time=True):
        pooling = pool_heads(name, text)
    st.text(pooling_sentence(pooling))
    if len(pooling.groups) == 1:
        return
    left, right = st.columns(2, gap="large")
    with left:
        show_chart(charts.drifts, pooling.rows, key="variants_drift")
    with right:
        st.markdown(
            ":small[Relative difference of each token's last hidden state, by number of key/value "
            "heads left]"
        )
        tokens = pooling.by_token.style.format(precision=3)
        st.dataframe(
            tokens,
            hide_index=True,
            height=tables.height(pooling.by_token, 290),
            key="variants_by_token",
        )
    styled = pooling.table.style.format(precision=4)
    st.dataframe(styled, hide_index=True, key="variants_drift_table")
    tables.download(
        "Download the drift (CSV)", pooling.table, f"{name}_pooled.csv", key="variants_drift_csv"
    )
    source.show_lines(
        "pages/kv_cache/variants/experiment/pool_kv_heads.py",
        "mean_of_groups",
        "group means",
    )


def grouped_entry(selected_entry: CatalogEntry) -> CatalogEntry | None:
    """The chosen model if it was trained with shared key/value heads, otherwise SmolLM2.

    No other model is loaded unless the visitor selects it, because it may be very large.
    """
    ready_by_name = {entry.spec.name: entry for entry in models.available()}
    for entry in (selected_entry, ready_by_name.get(SMOLLM2)):
        if entry is not None and 1 <= entry.spec.n_kv_heads < entry.spec.n_heads:
            return entry
    return None


def show_group(entry: CatalogEntry, text: str) -> None:
    """Show one group of a model with shared heads: its attention maps and keys."""
    spec = entry.spec
    with st.spinner(f"Running {spec.title} …", show_time=True):
        run = attention.run(spec.name, text)
    columns = st.columns(2, gap="large")
    with columns[0]:
        layer = controls.number("Layer", "variants_layer", spec.n_layers, 11, part="layer")
    with columns[1]:
        group = controls.number("Key/value head", "variants_group", spec.n_kv_heads, 0)
    size = spec.n_heads // spec.n_kv_heads
    heads = list(range(group * size, (group + 1) * size))
    st.text(group_sentence(run, layer, group))
    drawn_heads = heads[:MAX_MAPS]
    maps = run.weights[layer, drawn_heads]
    scale = ColourScale(float(maps.max()), square_root=True)
    for place, head, weights in zip(st.columns(len(drawn_heads)), drawn_heads, maps, strict=True):
        with place:
            head_map = Map(
                weights,
                run.tokens.labels,
                title=f"Query head {head}",
                causal=run.causal,
                scale=scale,
            )
            heatmap(head_map, key=f"variants_map_{head - heads[0]}")
    keys = run.k[layer, group]
    shared = Map(
        keys,
        [str(i) for i in range(keys.shape[1])],
        row_labels=run.tokens.labels,
        title=f"Shared keys of key/value head {group}, one row per token",
        causal=False,
        value_name="key",
        scale=DivergingScale(float(np.abs(keys).max())),
        axes=("token", "column"),
    )
    heatmap(shared, key="variants_keys")
    st.text(pooling_sentence(pool_heads(spec.name, text)))
    table = top_keys_table(run, layer, heads)
    with st.expander("The top key of each head in the group"):
        st.dataframe(
            table, hide_index=True, height=tables.height(table, 260), key="variants_group_table"
        )
        tables.download(
            "Download this group (CSV)", table, f"{spec.name}_group.csv", key="variants_group_csv"
        )


def group_sentence(run: Run, layer: int, group: int) -> str:
    """Sentences about how much heads differ within this group and across groups."""
    from pages.kv_cache.variants.experiment.forms import group_distances

    n_heads, n_groups = run.weights.shape[1], run.k.shape[1]
    size = n_heads // n_groups
    # a decoder's first token sees only itself, so heads can't differ there
    first = int(run.causal and len(run.tokens) > 1)
    weights = run.tensors.weights[layer][:, first:]
    own, _ = group_distances(weights[group * size : (group + 1) * size], size)
    within, across = group_distances(weights, size)
    names = ", ".join(str(group * size + i) for i in range(size))
    across_groups = "" if across is None else f", and two heads of different groups in {across:.0%}"
    return (
        f"In layer {layer} of {run.title}, query heads {names} share key/value head {group}. They "
        "have the same keys but different queries, so two of them differ in "
        f"{own:.0%} of their attention on average. Across this layer, two heads of the same group "
        f"differ in {within:.0%}{across_groups}."
    )


def top_keys_table(run: Run, layer: int, heads: list[int]) -> pd.DataFrame:
    """The key with the largest weight for every query and head of the group."""
    labels = run.tokens.labels
    columns: dict[str, Any] = {"position": range(len(labels)), "query": labels}
    for head in heads:
        weights = run.weights[layer, head]
        most = weights.argmax(-1)
        columns[f"head {head}: top key"] = [labels[i] for i in most]
        columns[f"head {head}: weight"] = weights.max(-1)
    return pd.DataFrame(columns)
