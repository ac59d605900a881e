"""A trained model with averaged key/value heads, and one that was trained with shared ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.kv_cache.variants import charts
from pretrained import CatalogEntry
from pretrained.tokenization.tokens import printable
from serving import models, turns
from serving import runs as attention
from serving.cache import kept
from serving.limits import DRIFT_CACHE_BYTES, MAX_DRIFT_TOKENS
from serving.prompts import prepare
from serving.runs import Run
from ui.canvas.heatmap import ColourScale, DivergingScale, Map, heatmap
from ui.charts.show import show as show_chart
from ui.export import tables
from ui.widgets import controls
from ui.widgets.head_picture import isolated

if TYPE_CHECKING:
    from attention_core.experiments.kv_cache.variants.pooling_drift import Drift

MOST_MAPS = 4  # heads of a group that are drawn
MODEL = "variants_model"
SMOLLM2 = "smollm2-135m-instruct"


@dataclass(frozen=True)
class Pooled:
    """A model with fewer and fewer key/value heads on one text; the first has all of its own.

    Arrays as in `pooling_drift.Drift`; `tokens` are labels, `likeliest` pieces.
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
    stays: tuple[bool | None, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.cosine.nbytes + self.relative.nbytes + self.attention.nbytes

    @property
    def predicts(self) -> bool:
        """Whether the model predicts a next token."""
        return self.divergence[0] is not None

    @property
    def table(self) -> pd.DataFrame:
        """One row for each number of key/value heads."""
        frame = pd.DataFrame(
            {
                "key/value heads": self.groups,
                "query heads each": [self.n_heads // g for g in self.groups],
                "mean 1 − cosine": self.cosine.mean(1),
                "mean difference": self.relative.mean(1),
                "largest, of a token": self.relative.max(1),
                "attention moved": self.attention.mean((1, 2)),
                "most, of a head": self.attention.max((1, 2)),
            }
        )
        if self.predicts:
            frame["divergence, nats"] = self.divergence
            frame["likeliest next"] = self.likeliest
            frame["as before"] = self.stays
        return frame

    @property
    def rows(self) -> pd.DataFrame:
        """What the chart shows."""
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
        """The relative difference of every token, a column for each number of key/value heads."""
        columns: dict[str, Any] = {"position": range(len(self.tokens)), "token": self.tokens}
        for heads, row in zip(self.groups, self.relative, strict=True):
            columns[str(heads)] = row
        return pd.DataFrame(columns)


@kept(DRIFT_CACHE_BYTES, key=lambda name, text: (*models.key(name), text))
def pooled(name: str, text: str) -> Pooled:
    """A trained model on a text, pooled to every number of heads that divides its own; kept.

    Raises: OverLimit for a text that is too long, ValueError for one without any token.
    """
    import torch

    from attention_core import mean_pooled_kv_heads
    from attention_core.experiments.kv_cache.variants.forms import divisors
    from attention_core.experiments.kv_cache.variants.pooling_drift import drift, outcome

    model = models.get(name)
    tokens = prepare(model, text, MAX_DRIFT_TOKENS, "this comparison").tokens
    ids = torch.tensor(tokens.ids, device=model.device)
    with turns.turn():
        before = outcome(model.core, ids)
    found: list[Drift] = []
    for heads in divisors(model.core.config.kv_heads):
        fewer = mean_pooled_kv_heads(model.core, heads, share=True)
        with turns.turn():
            found.append(drift(before, outcome(fewer, ids), heads))

    def piece(one: Drift) -> str | None:
        if one.likeliest is None:
            return None
        return printable(model.tokenizer.decode([one.likeliest[1]])) or "∅"

    return Pooled(
        title=model.spec.title,
        n_heads=model.core.config.n_heads,
        groups=tuple(one.n_kv_heads for one in found),
        tokens=tuple(tokens.labels),
        cosine=torch.stack([one.cosine for one in found]).cpu().numpy(),
        relative=torch.stack([one.relative for one in found]).cpu().numpy(),
        attention=torch.stack([one.attention for one in found]).float().cpu().numpy(),
        divergence=tuple(one.divergence for one in found),
        likeliest=tuple(piece(one) for one in found),
        stays=tuple(
            None if one.likeliest is None else one.likeliest[0] == one.likeliest[1] for one in found
        ),
    )


def said(found: Pooled) -> str:
    """What pooling to one head did, in a line of plain text."""
    if len(found.groups) == 1:
        return f"{found.title} has a single key/value head: there is nothing to pool."
    last = -1
    line = (
        f"{found.title}, pooled from {found.groups[0]} key/value heads to {found.groups[last]}: "
        f"the last hidden states keep a cosine of {1 - found.cosine[last].mean():.3f} on average "
        f"and move by {found.relative[last].mean():.0%} of their length; heads move "
        f"{found.attention[last].mean():.0%} of their attention to other tokens."
    )
    if not found.predicts:
        return line
    before, after = (isolated(str(found.likeliest[i])) for i in (0, last))
    kept = (
        f"The likeliest next token stays “{before}”"
        if found.stays[last]
        else f"The likeliest next token was “{before}” and is “{after}”"
    )
    return f"{line} {kept}; the divergence is {found.divergence[last]:.2f} nats."


def show(name: str, text: str) -> Pooled:
    """The drift of one model: a sentence, the chart, the table, every token."""
    with st.spinner("Pooling the heads …", show_time=True):
        changed = pooled(name, text)
    st.text(said(changed))
    if len(changed.groups) == 1:
        return changed
    left, right = st.columns(2, gap="large")
    with left:
        show_chart(charts.drifts, changed.rows, key="variants_drift")
    with right:
        st.markdown(
            ":small[Relative difference of each token's last hidden state, by key/value heads left]"
        )
        tokens = changed.by_token.style.format(precision=3)
        st.dataframe(tokens, hide_index=True, height=290, key="variants_by_token")
    shown = changed.table.style.format(precision=4)
    st.dataframe(shown, hide_index=True, key="variants_drift_table")
    tables.download(
        "Download the drift (CSV)", changed.table, f"{name}_pooled.csv", key="variants_drift_csv"
    )
    return changed


def grouped_entry(chosen: CatalogEntry) -> CatalogEntry | None:
    """A model that was trained with shared key/value heads: the chosen one, else SmolLM2.

    No other is opened unasked: it may be a very large one.
    """
    here = {entry.spec.name: entry for entry in models.ready()}
    for entry in (chosen, here.get(SMOLLM2)):
        if entry is not None and 1 <= entry.spec.n_kv_heads < entry.spec.n_heads:
            return entry
    return None


def show_group(entry: CatalogEntry, text: str) -> None:
    """One group of a model that was trained so: its heads' maps, and the key they all read."""
    spec = entry.spec
    with st.spinner(f"Running {spec.title} …", show_time=True):
        run = attention.run(spec.name, text)
    columns = st.columns(2, gap="large")
    with columns[0]:
        layer = controls.number("Layer", "variants_layer", spec.n_layers, 11)
    with columns[1]:
        group = controls.number("Key/value head", "variants_group", spec.n_kv_heads, 0)
    size = spec.n_heads // spec.n_kv_heads
    heads = list(range(group * size, (group + 1) * size))
    st.text(group_said(run, layer, group))
    drawn = heads[:MOST_MAPS]
    maps = run.weights[layer, drawn]
    scale = ColourScale(float(maps.max()), square_root=True)
    for place, head, weights in zip(st.columns(len(drawn)), drawn, maps, strict=True):
        with place:
            shown = Map(
                weights,
                run.tokens.labels,
                title=f"Query head {head}",
                causal=run.causal,
                scale=scale,
            )
            heatmap(shown, key=f"variants_map_{head - heads[0]}")
    keys = run.k[layer, group]
    shared = Map(
        keys,
        [str(i) for i in range(keys.shape[1])],
        row_labels=run.tokens.labels,
        title=f"The keys that they share: key/value head {group}, a row for each token",
        causal=False,
        value_name="key",
        scale=DivergingScale(float(np.abs(keys).max())),
    )
    heatmap(shared, key="variants_keys")
    st.text(said(pooled(spec.name, text)))
    table = looks_table(run, layer, heads)
    with st.expander("Where each head of the group looks most"):
        st.dataframe(table, hide_index=True, height=260, key="variants_group_table")
        tables.download(
            "Download this group (CSV)", table, f"{spec.name}_group.csv", key="variants_group_csv"
        )


def group_said(run: Run, layer: int, group: int) -> str:
    """How different the heads of this group are, beside heads of different groups."""
    from attention_core.experiments.kv_cache.variants.forms import group_distances

    n_heads, n_groups = run.weights.shape[1], run.k.shape[1]
    size = n_heads // n_groups
    weights = run.tensors.weights[layer]
    own, _ = group_distances(weights[group * size : (group + 1) * size], size)
    within, across = group_distances(weights, size)
    names = ", ".join(str(group * size + i) for i in range(size))
    other = "" if across is None else f", two heads of different groups {across:.0%}"
    return (
        f"{run.title}, layer {layer}: query heads {names} read key/value head {group}. Their keys "
        f"are one tensor, their queries are not: two of them differ in {own:.0%} of their "
        f"attention. In this layer, two heads of one group differ in {within:.0%}{other}."
    )


def looks_table(run: Run, layer: int, heads: list[int]) -> pd.DataFrame:
    """For every query, the key that each head of the group weighs most."""
    labels = run.tokens.labels
    columns: dict[str, Any] = {"position": range(len(labels)), "query": labels}
    for head in heads:
        weights = run.weights[layer, head]
        most = weights.argmax(-1)
        columns[f"head {head} looks at"] = [labels[i] for i in most]
        columns[f"head {head} weight"] = weights.max(-1)
    return pd.DataFrame(columns)
