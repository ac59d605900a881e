"""Sections of the page "Inside the cache" below its picture."""

from __future__ import annotations

import streamlit as st

from pages.kv_cache.inside_the_cache import charts, crop, numbers, overflow_runs, pictures
from pages.kv_cache.inside_the_cache.overflow_runs import FIRST, RESTART, RING, FullCacheRuns
from pages.kv_cache.inside_the_cache.run import CacheRun
from serving import models
from ui.charts.show import show
from ui.export import tables
from ui.widgets import code_block, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.progress import run_with_progress
from ui.widgets.run_form import run_form
from ui.widgets.stepper import stepper

FILL = "Fill cache"  # label of the button that runs the text through the small cache
PARTS = BYTES, STEPS, CROP, FULL = (
    "Bytes: measured and by the formula",
    "Every step, with the cache and without",
    "Crop: go back and take another turn",
    "When the cache is full",
)


def bytes_held(run: CacheRun, step_index: int) -> None:
    """Show the bytes of the cache, by the formula and as measured."""
    st.header(BYTES)
    left, right = st.columns(2, gap="large")
    with left:
        code_block.plain(numbers.formula(run, step_index))
        st.markdown(
            "The memory is allocated once, for the longest text this run can reach, so no step "
            "copies old rows. Each token uses the same number of bytes."
        )
    with right:
        show(
            charts.bytes_chart,
            numbers.bytes_held(run),
            step_index,
            key="inside_the_cache_bytes",
        )


def every_step(run: CacheRun, step_index: int) -> None:
    """Show each step with and without the cache, and how much the logits differ."""
    st.header(STEPS)
    plain_table(numbers.steps_table(run), "Every step with the cache", max_rows=388)
    plain_table(
        numbers.uncached_table(run),
        "Every step without the cache",
        {"logit difference": "{:.2e}"},
        max_rows=388,
    )
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(numbers.verdict(run))
    with right:
        differences = numbers.logit_differences(run)
        show(charts.difference_chart, differences, step_index, key="inside_the_cache_differences")


def crop_section(run: CacheRun, layer: int, head: int) -> None:
    """Show the section on cropping: controls, pictures of the buffer, measurements."""
    st.header(CROP)
    with run_form(
        "inside_the_cache_cropping",
        "inside_the_cache_crop",
        "inside_the_cache_other",
        verb="Crop cache",
    ):
        n_kept = pictures.range_slider(
            "Tokens to keep", "inside_the_cache_crop", 1, len(run.run_ids), run.n_prompt - 1
        )
        continuation = linked(
            st.text_input,
            "Continue with",
            " cold and wet, so we",
            key="inside_the_cache_other",
            max_chars=200,
        )
    try:
        after_crop = crop.crop_result(run, n_kept, continuation)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return
    crop.pictures(run, after_crop, layer, head)
    st.text(crop.sentence(after_crop))
    left, right = st.columns([3, 2], gap="large")
    with left:
        plain_table(crop.table(after_crop), "The cache before and after the crop")
    with right:
        st.markdown(
            "`crop` only reduces the length. The memory stays allocated, and rows marked *old* "
            "keep their numbers. Nothing reads them, and the next tokens overwrite them."
            if after_crop.is_unchanged
            else "The crop changed stored numbers, which is a bug."
        )


def full_cache_section(run: CacheRun, layer: int, head: int) -> None:
    """Show the section on a full cache: its error, and three methods to continue."""
    st.header(FULL)
    if run.n_steps < 2:
        why = run.end_reason or "Generate more tokens to fill the cache."
        st.markdown(f"This run has a single step, so its cache is never full. {why}")
        return
    with run_form("inside_the_cache_fill", "inside_the_cache_room", verb=FILL):
        room = pictures.range_slider(
            "Cache size (tokens)",
            "inside_the_cache_room",
            run.n_prompt,
            len(run.run_ids) - 1,
            run.n_prompt + run.n_steps // 2 - 1,
        )
    try:
        full_cache = run_with_progress(
            "inside_the_cache_fill",
            (run.settings, room),
            lambda report: overflow_runs.run_full_cache(run, room, report),
            cached=overflow_runs.run_full_cache.is_cached(run, room),
            total=overflow_runs.n_passes(run),
            unit="passes",
            done=lambda result: (
                f"Ran {overflow_runs.n_passes(run)} passes in {result.seconds:.2f} s."
            ),
            verb=FILL,
        )
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        return
    if full_cache is not None:
        _strategies(run, full_cache, layer, head)


def _strategies(run: CacheRun, full_cache: FullCacheRuns, layer: int, head: int) -> None:
    st.markdown("When a token no longer fits, the cache raises this error:")
    code_block.plain(f"ValueError: {full_cache.message}")
    st.markdown(
        "There are three ways to continue. Each one was run on the text above:\n"
        f"- **{RESTART.capitalize()}**: empty the cache, then run the last "
        f"{full_cache.capacity // 2} "
        "tokens again, together with the new one.\n"
        f"- **{RING.capitalize()}**: use the {full_cache.capacity} rows as a ring. Position p goes "
        f"into row p mod {full_cache.capacity} and replaces the oldest token.\n"
        f"- **{FIRST.capitalize()}**: see only the first {full_cache.n_first} rows and the last "
        f"{full_cache.capacity - full_cache.n_first}. Compare it with the sliding window to see "
        "what "
        "losing the first tokens costs."
    )
    plain_table(overflow_runs.summary(run, full_cache), "Cost of each method")
    past = min(run.n_steps, full_cache.capacity - run.n_prompt + 4)
    step_index = (
        stepper("Step of the ring", run.n_steps, past, key="inside_the_cache_full_step", keys=False)
        - 1
    )
    st.text(overflow_runs.sentence(run, full_cache, step_index))
    left, right = st.columns(2, gap="large")
    with left:
        overflow_runs.ring(run, full_cache, step_index, layer, head)
    with right:
        table = overflow_runs.table(run, full_cache)
        last = overflow_runs.last_fitting(run, full_cache)
        show(charts.drift_chart, table, last, step_index, key="inside_the_cache_drift")
        tables.download(
            "Download all steps (CSV)",
            table,
            "full_cache.csv",
            key="inside_the_cache_full_csv",
        )
