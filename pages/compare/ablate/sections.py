"""What the page "Ablate" shows: the change, and the ranking of all heads."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from pages.compare.ablate import charts, pickers, ranking, runs
from pages.compare.ablate.ranking import Ranking, RankJob
from pages.compare.ablate.runs import Effect, Question
from pretrained.tokenization.tokens import printable
from serving import models
from serving.limits import OverLimit
from serving.queues import GENERATIONS
from ui.charts import theme
from ui.export import tables
from ui.widgets import messages
from ui.widgets.head_picture import isolated

TOP = 10
SHORT_SECONDS = 0.25  # a small model is done by then, and the page shows no progress for it
_JOB, _GRID, _TABLE = "ablate_job", "ablate_grid", "ablate_ranked"


def asked_text(asked: Question) -> str:
    """What the model was asked, in a line of plain text."""
    if asked.position is None:
        return f"{asked.title} has no masked-word head here: its hidden states are compared."
    label = isolated(asked.tokens.labels[asked.position])
    if asked.asks == "next":
        return f"{asked.title} predicts the token after position {asked.position}, “{label}”."
    if asked.ids[asked.position] == asked.tokens.ids[asked.position]:
        return f"{asked.title} predicts the word masked at position {asked.position}."
    return f"{asked.title} reads [MASK] at position {asked.position}, in place of “{label}”."


def effect(asked: Question, found: Effect) -> None:
    """What switching the chosen heads off changes: numbers, chart, table, download."""
    if asked.position is None:
        _states(asked, found)
    else:
        _predictions(asked, found)


def predictions_table(asked: Question, found: Effect) -> pd.DataFrame:
    """The likeliest tokens before and after, by their probability before."""
    before, after = found.before, found.after
    if before is None or after is None:
        raise ValueError("there are no predictions of a model that makes none")
    ids = np.union1d(np.argsort(-before)[:TOP], np.argsort(-after)[:TOP])
    ids = ids[np.argsort(-before[ids], kind="stable")]
    return pd.DataFrame(
        {
            "token": [_token(asked, int(index)) for index in ids],
            "before": np.exp(before[ids]),
            "after": np.exp(after[ids]),
            "Δ log p": after[ids] - before[ids],
            "place before": [int((before > before[i]).sum()) + 1 for i in ids],
            "place after": [int((after > after[i]).sum()) + 1 for i in ids],
            "id": ids,
        }
    )


def _token(asked: Question, index: int) -> str:
    return printable(models.get(asked.model).tokenizer.decode([index])) or "∅"


def _predictions(asked: Question, found: Effect) -> None:
    table = predictions_table(asked, found)
    first, last = table.loc[table["before"].idxmax()], table.loc[table["after"].idxmax()]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.vega_lite_chart(charts.predictions(table, ink=theme.ink()), key="ablate_predictions")
    with right:
        cells = st.columns(2)
        cells[0].metric("Divergence (nats)", f"{found.size:.3f}")
        cells[1].metric("Change of top logit", f"{found.second:+.2f}")
        # metrics read their text as Markdown: tokens go into plain text
        st.text(
            f"Likeliest with all heads on: “{isolated(first['token'])}”, {first['before']:.3f}; "
            f"now {first['after']:.3f}.\n"
            f"Likeliest now: “{isolated(last['token'])}”, {last['after']:.3f}; "
            f"{last['before']:.3f} before."
        )
        shown = table.style.format({"before": "{:.4f}", "after": "{:.4f}", "Δ log p": "{:+.2f}"})
        st.dataframe(shown, hide_index=True, height=250, key="ablate_table")
        name = f"{asked.model}_ablation.csv"
        tables.download("Download these predictions (CSV)", table, name, key="ablate_csv")


def states_table(asked: Question, found: Effect) -> pd.DataFrame:
    """What becomes of the state of each token."""
    return pd.DataFrame(
        {
            "position": range(len(asked.tokens)),
            "token": asked.tokens.labels,
            "1 − cosine": found.cosine,
            "relative distance": found.relative,
        }
    )


def _states(asked: Question, found: Effect) -> None:
    table = states_table(asked, found)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        chart = charts.states(table, ink=theme.ink())
        st.vega_lite_chart(chart, key="ablate_states")
    with right:
        cells = st.columns(2)
        cells[0].metric("Mean 1 − cosine", f"{found.size:.4f}")
        cells[1].metric("Mean relative distance", f"{found.second:.4f}")
        shown = table.style.format({"1 − cosine": "{:.5f}", "relative distance": "{:.4f}"})
        st.dataframe(shown, hide_index=True, height=330, key="ablate_table")
        name = f"{asked.model}_ablation.csv"
        tables.download("Download these changes (CSV)", table, name, key="ablate_csv")


def honest(asked: Question, found: Effect, heads: Sequence[str], kind: str) -> None:
    """Two measured warnings: effects do not add up, and the way of switching off matters."""
    unit = "nats" if asked.position is not None else "in mean 1 − cosine"
    other = runs.KINDS[1 - runs.KINDS.index(kind)]
    lines = [f"Made {other} instead: {found.other_kind:.3f} {unit}, with {kind} {found.size:.3f}."]
    if found.alone:
        each = " + ".join(f"{size:.3f}" for size in found.alone)
        lines.append(
            f"Alone, these heads change {each} = {sum(found.alone):.3f} {unit}; together "
            f"{found.size:.3f}. Effects need not add up."
        )
    elif len(heads) > 1:
        lines.append("The text is too long to switch each of these heads off alone as well.")
    else:
        lines.append("Choose a second head to see whether the two effects add up.")
    st.text("\n".join(lines))


def rank(asked: Question, heads: Sequence[str], kind: str) -> None:
    """The effects of all heads: kept ones, those of a running job, or a button that starts one.

    A short text is ranked at once, unless the visitor stopped that.
    """
    found = ranking.kept(asked, kind)
    job: RankJob | None = st.session_state.get(_JOB)
    if job is not None and (job.asked.key, job.kind) != (asked.key, kind):
        job = None  # of other settings; nobody watches it any more, so it ends by itself
    if found is None and job is None and len(asked.ids) <= ranking.MAX_AT_ONCE_TOKENS:
        with contextlib.suppress(OverLimit):  # too many visitors wait: the button is still there
            job = _put(asked, kind)
            job.finished.wait(SHORT_SECONDS)
            found = ranking.kept(asked, kind)
    if found is None and job is not None and job.live:
        st.fragment(_running, run_every=0.25)(job, heads)
        return
    spec = models.spec(asked.model)
    left, right = st.columns([1, 2], vertical_alignment="center")
    left.button(
        f"Rank all {spec.n_layers * spec.n_heads} heads",
        type="primary",
        icon=":material/sort:",
        key="ablate_rank",
        on_click=_start,
        args=(asked, kind),
        disabled=found is not None,
    )
    with right:
        if found is not None:
            st.text(f"Each head switched off alone ({kind}). Choose a cell or a row to add it.")
        elif job is not None and job.error:
            messages.problem(job.error)
        elif job is not None and job.state == "stopped":
            st.text(f"Stopped at {job.progress:.0%}; what was measured is below.")
        else:
            st.text(f"Tokens: {len(asked.ids)}. This takes some seconds, and you can stop it.")
    partial = job.ranking if job is not None else Ranking(*_nothing(asked))
    _results(asked, found or partial, heads, pick=found is not None)


def _nothing(asked: Question) -> tuple[np.ndarray, np.ndarray]:
    spec = models.spec(asked.model)
    empty = np.full((spec.n_layers, spec.n_heads), np.nan, dtype=np.float32)
    return empty, empty


def _put(asked: Question, kind: str) -> RankJob:
    """Queue a ranking in place of the visitor's earlier one; OverLimit where there is no room."""
    job = RankJob(asked, kind)
    GENERATIONS.put(job, instead_of=st.session_state.get(_JOB))
    st.session_state[_JOB] = job
    return job


def _start(asked: Question, kind: str) -> None:
    try:
        _put(asked, kind)
    except OverLimit as error:
        st.session_state["ablate_refused"] = str(error)


def refused() -> None:
    """Say once why the last ranking could not start."""
    message = st.session_state.pop("ablate_refused", None)
    if message is not None:
        messages.problem(message)


def _running(job: RankJob, heads: Sequence[str]) -> None:
    was_live = job.live  # read first: what is painted below is then at least that fresh
    job.watch()
    left, right = st.columns([1, 2], vertical_alignment="center")
    left.button("Stop", icon=":material/stop:", key="ablate_stop", on_click=job.stop)
    ahead = GENERATIONS.ahead(job)
    with right:
        note = f"Waiting: {ahead} ahead of you." if ahead else f"{job.progress:.0%} done"
        st.progress(job.progress, text=note)
    _results(job.asked, job.ranking, heads, pick=False)
    if not was_live:
        st.rerun()  # the job is over: the page shows its result without a timer


def _results(asked: Question, found: Ranking, heads: Sequence[str], *, pick: bool) -> None:
    """Grid, table, and what can be done with them; clicks only when the ranking is complete."""
    names = ranking.measures(asked)
    off = [runs.parse(head) for head in heads]
    chart = charts.grid(found.sizes, found.seconds, off, names, ink=theme.ink(), pick=pick)
    table = ranking.table(asked, found)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if pick:
            st.vega_lite_chart(chart, key=_GRID, on_select=_picked, selection_mode=charts.PICK)
        else:
            st.vega_lite_chart(chart, key="ablate_grid_partial")
    height = charts.grid_height(len(found.sizes)) - 60
    second = "{:.4f}" if asked.asks == "states" else "{:+.4f}"  # a distance has no sign
    shown = table[["name", *names]].style.format({names[0]: "{:.5f}", names[1]: second})
    with right:
        if pick:
            st.dataframe(
                shown,
                hide_index=True,
                height=height,
                key=_TABLE,
                on_select=_row_picked,
                selection_mode="single-row",
            )
            # the callback reads which head stands in the selected row
            st.session_state["ablate_order"] = table["name"].tolist()
        else:
            st.dataframe(shown, hide_index=True, height=height, key="ablate_ranked_partial")
        order = table["name"].tolist() if pick else []
        rest = [name for name in order if name not in heads]
        with st.container(horizontal=True):
            st.button(
                "Switch off the strongest",
                key="ablate_first",
                disabled=not order,
                on_click=pickers.only,
                args=(order[0] if order else None,),
            )
            st.button(
                "Add the next strongest",
                key="ablate_next",
                disabled=not rest or len(heads) >= runs.MAX_HEADS,
                on_click=pickers.add,
                args=(rest[0] if rest else "",),
            )
            tables.download(
                "Download the ranking (CSV)",
                table,
                f"{asked.model}_ranking.csv",
                key="ablate_ranking_csv",
                disabled=table.empty,
            )


def _picked() -> None:
    for cell in st.session_state[_GRID].selection.get(charts.PICK, []):
        pickers.add(f"L{int(cell['layer'])}H{int(cell['head'])}")


def _row_picked() -> None:
    order = st.session_state.get("ablate_order", [])
    for row in st.session_state[_TABLE].selection.rows:
        if row < len(order):
            pickers.add(order[row])
