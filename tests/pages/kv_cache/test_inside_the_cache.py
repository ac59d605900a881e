"""Compare the Inside the cache page to tensors computed without the page's code."""

from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from attention_core import generate
from pages.kv_cache.inside_the_cache import crop, downloads, numbers, overflow_runs, run
from serving import models
from serving.limits import MAX_INSIDE_PROMPT, MAX_INSIDE_TOKENS, TEXTS_BYTES, OverLimit
from tests.helpers.apptest import code, maps, messages, open_whole_page, plain_tables
from tests.helpers.bundled_models import FIRST_GPT2, bundled_model
from tests.helpers.snippets import run_snippet

PAGE = "pages/kv_cache/inside_the_cache/page.py"
PROMPT = "Two cats sat. Two"
N_NEW, STEP, LAYER, HEAD, ROOM, KEPT = 5, 3, 4, 2, 6, 3
OTHER = " grey mice ran"
LINK = {
    "inside_the_cache_prompt": PROMPT,
    "inside_the_cache_tokens": str(N_NEW),
    "inside_the_cache_step": str(STEP),
    "inside_the_cache_layer": str(LAYER),
    "inside_the_cache_kv_head": str(HEAD),
    "inside_the_cache_crop": str(KEPT),
    "inside_the_cache_other": OTHER,
    "inside_the_cache_room": str(ROOM),
    "inside_the_cache_full_step": str(N_NEW),
}
TOKEN_BYTES = 6 * 8 * 32 * 2 * 4  # One row in all layers.


@pytest.fixture(scope="module")
def expected() -> tuple[list[int], list[int], np.ndarray, np.ndarray, torch.Tensor]:
    """Prompt, new ids, the head's keys and values (S, D), and logits (S, V)."""
    model = bundled_model(FIRST_GPT2)
    prompt = list(model.tokenizer.encode(PROMPT).ids)
    new = generate(model.core, prompt, max_new_tokens=N_NEW)
    with torch.inference_mode():
        output = model.core(torch.tensor([prompt + new[:-1]]), record=True)
    record = output.records[LAYER]
    assert output.logits is not None
    return prompt, new, record.k[0, HEAD].numpy(), record.v[0, HEAD].numpy(), output.logits[0]


def test_link_restores_the_buffers(site: AppTest, expected):
    prompt, new, keys, values, logits = expected
    open_whole_page(site, PAGE, **LINK)
    assert not site.exception
    assert not site.toast
    assert not messages(site)
    n_rows, length = len(prompt) + N_NEW - 1, len(prompt) + STEP - 1
    pictures = maps(site)
    for (header, rows_drawn), tensor in zip(pictures[:2], (keys, values), strict=True):
        assert rows_drawn.shape == (n_rows, 32)
        np.testing.assert_allclose(rows_drawn[:length], tensor[:length], atol=1e-4)
        assert np.isnan(rows_drawn[length:]).all()
        assert header["largest"] == pytest.approx(np.abs(tensor).max(), abs=1e-4)
        assert header["framedRows"] == [length - 1]
        assert [" Wr " in label for label in header["rowLabels"]].index(True) == length - 1
        assert header["rowLabels"][length:] == [str(row) for row in range(length, n_rows)]
    formula = code(site)[0]
    # Both the computed and the measured size.
    assert formula.count(f"{n_rows * TOKEN_BYTES:,}") == 2
    assert f"cache.nbytes_used reports {length * TOKEN_BYTES:,}" in formula
    steps, uncached, cropped, summary = plain_tables(site)
    assert list(steps["written"]) == [
        f"rows 0 to {len(prompt) - 1}",
        *(f"row {len(prompt) + i}" for i in range(N_NEW - 1)),
    ]
    cache_sizes = [(len(prompt) + i) * TOKEN_BYTES for i in range(N_NEW)]
    assert list(steps["bytes used"]) == list(steps["by formula"]) == list(steps["bytes read"])
    assert list(steps["bytes used"]) == cache_sizes
    assert list(uncached["recomputed"]) == [0, *range(len(prompt), len(prompt) + N_NEW - 1)]
    assert list(uncached["same token"]) == ["yes"] * N_NEW
    assert uncached["logit difference"].max() < 1e-3
    n_other = len(bundled_model(FIRST_GPT2).tokenizer.encode(OTHER).ids)
    assert list(cropped["old rows"]) == [0, n_rows - KEPT, n_rows - KEPT - n_other]
    # From this step on, the text doesn't fit into the cache.
    assert f"{ROOM} of at most {ROOM} tokens" in code(site)[1]
    assert list(summary["rows"]) == [n_rows, ROOM, ROOM, ROOM]

    after_crop, continued, ring = (rows_drawn for _, rows_drawn in pictures[2:])
    np.testing.assert_allclose(after_crop, keys, atol=1e-4)  # Cropping doesn't erase anything.
    model = bundled_model(FIRST_GPT2)
    other = [*prompt[:KEPT], *model.tokenizer.encode(OTHER).ids]
    with torch.inference_mode():
        fresh = model.core(torch.tensor([other]), record=True).records[LAYER].k[0, HEAD].numpy()
    np.testing.assert_allclose(continued[: len(other)], fresh, atol=1e-4)
    np.testing.assert_allclose(continued[len(other) :], keys[len(other) :], atol=1e-4)
    # In the first layer, the ring contains the rows of the full context in a different order.
    site.select_slider("inside_the_cache_layer").set_value(0).run()
    with torch.inference_mode():
        first = model.core(torch.tensor([prompt + new[:-1]]), record=True).records[0].k[0, HEAD]
    ring = maps(site)[4][1]
    for row in range(ROOM):
        position = max(p for p in range(n_rows) if p % ROOM == row)
        np.testing.assert_allclose(ring[row], first[position].numpy(), atol=1e-4)


def test_cost_and_error_of_each_strategy(expected):
    prompt, new, _, _, logits = expected
    result_run = run.run(run.CacheSettings(FIRST_GPT2, PROMPT, N_NEW))
    assert [step.token_id for step in result_run.steps] == new
    result = overflow_runs.run_full_cache(result_run, ROOM)
    text, model = prompt + new[:-1], bundled_model(FIRST_GPT2)
    past = overflow_runs.summary(result_run, result).set_index("way")
    for step, restart_step in enumerate(result.strategies[overflow_runs.RESTART]):
        end = len(prompt) + step
        first = 0 if end <= ROOM else end - restart_step.n_visible
        with torch.inference_mode():
            output = model.core(torch.tensor([text[first:end]]), last_only=True).logits
        assert output is not None
        largest = float((output[0, -1] - logits[end - 1]).abs().max())
        assert restart_step.drift.largest == pytest.approx(largest, abs=1e-2)
    assert all(t.nbytes == ROOM * TOKEN_BYTES for way in result.strategies.values() for t in way)
    assert past.loc[overflow_runs.WHOLE, "allocated, bytes"] == f"{len(text) * TOKEN_BYTES:,}"
    # Losing the first token changes the logits a lot. Keeping it doesn't.
    lost, with_sink = (
        result.strategies[way][-1].drift.largest
        for way in (overflow_runs.RING, overflow_runs.FIRST)
    )
    assert lost > with_sink > 0
    with pytest.raises(ValueError, match="a cache of 40 rows"):
        overflow_runs.run_full_cache(result_run, 40)


def test_downloads_and_snippet(expected, capsys: pytest.CaptureFixture[str]):
    prompt, new, keys, values, logits = expected
    trace = run.run(run.CacheSettings(FIRST_GPT2, PROMPT, N_NEW))
    stored = downloads.arrays(trace)
    np.testing.assert_allclose(stored["keys"][LAYER, HEAD], keys, atol=1e-4)
    np.testing.assert_allclose(stored["values"][LAYER, HEAD], values, atol=1e-4)
    np.testing.assert_allclose(stored["logits"], logits[len(prompt) - 1 :].numpy(), atol=1e-3)
    assert [*stored["prompt_ids"], *stored["new_ids"]] == prompt + new
    table = downloads.every_step(trace)
    assert len(table) == N_NEW
    names, _ = run_snippet(downloads.snippet(trace, STEP), capsys)
    assert np.array_equal(names["keys"].numpy(), trace.keys)


def test_invalid_and_hostile_text(site: AppTest):
    hostile, prefix = "<img src=x> ![x](http://example.invalid) **b**\u202e", "inside_the_cache"
    link = {f"{prefix}_prompt": hostile, f"{prefix}_tokens": "2", f"{prefix}_other": hostile[:30]}
    open_whole_page(site, PAGE, **link)
    assert not site.exception
    assert not messages(site)
    assert not any("example.invalid" in m.value or "<img" in m.value for m in site.markdown)
    for key, button, text, message in (
        ("other", "cropping", "", "continue with"),
        ("other", "cropping", "a " * 60, "over the limit of 32"),
        ("prompt", "run", "", "type a word"),
        ("prompt", "run", "a " * 200, "over the limit of 64"),
    ):
        site.text_input(f"{prefix}_{key}").set_value(text)
        site.button(f"{prefix}_{button}_go").click().run()
        assert not site.exception
        assert any(message in m for m in messages(site)), message
        assert site.text_input(f"{prefix}_{key}").value == text


def test_stopped_run_stays_stopped(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    run.run.clear()
    requests = []

    def make(settings: run.CacheSettings, reporter: run.Reporter) -> run.CacheRun:
        requests.append(settings)
        raise ValueError("ran")

    monkeypatch.setattr(run, "_generate", make)
    settings = run.CacheSettings(FIRST_GPT2, PROMPT, 4)
    site.session_state["inside_the_cache_run_stopped"] = settings
    open_whole_page(site, PAGE, inside_the_cache_prompt=PROMPT, inside_the_cache_tokens="4")
    assert requests == []
    site.button("inside_the_cache_run_go").click().run()
    assert requests == [settings]
    assert messages(site) == ["ran"]


def test_stopped_fill_keeps_the_rest_and_can_restart(site: AppTest):
    settings = run.CacheSettings(FIRST_GPT2, PROMPT, N_NEW)
    overflow_runs.run_full_cache.clear()
    site.session_state["inside_the_cache_fill_stopped"] = (settings, ROOM)
    open_whole_page(site, PAGE, **LINK)
    assert not site.exception
    assert len(maps(site)) == 4  # Keys, values and both pictures of the crop.
    site.button("inside_the_cache_fill_go").click().run()
    assert len(maps(site)) == 5
    assert maps(site)[4][1].shape[0] == ROOM


def test_run_reports_progress_and_can_be_abandoned():
    counts: list[int] = []

    def report(count: int) -> None:
        counts.append(count)
        if count == 2:
            raise InterruptedError

    settings = run.CacheSettings(FIRST_GPT2, "Nobody else runs this", 3)
    with pytest.raises(InterruptedError):
        run.run(settings, report)
    assert max(counts) == 2
    assert run.run(settings).n_steps == 3  # The abandoned run released its locks.
    with pytest.raises(OverLimit, match="not 41"):
        run.run(run.CacheSettings(FIRST_GPT2, PROMPT, 41))


def test_model_with_a_short_context(site: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "tiny-gpt2"
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_positions=9, n_embd=12, n_layer=2, n_head=3)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    link = {"model": "tiny-gpt2", "prompt": "The cat sat", "layer": "1", "kv_head": "2"}
    link |= {"crop": "9", "other": "a b"}
    open_whole_page(site, PAGE, **{f"inside_the_cache_{name}": at for name, at in link.items()})
    assert not site.exception
    (message,) = messages(site)
    assert message.startswith("9 remaining and 2 new tokens")
    _, buffer = maps(site)[0]
    # The model reads the ninth token. The tenth is selected but never read.
    assert buffer.shape == (9, 4)
    trace = run.run(run.CacheSettings("tiny-gpt2", "The cat sat", 16))
    assert "7 new tokens" in trace.end_reason
    assert numbers.formula_bytes(trace, trace.n_rows) == trace.steps[0].nbytes == 2 * 9 * 12 * 2 * 4
    assert crop.crop_result(trace, 7, "a b").n_after == 9


def test_runs_are_measured_cached_and_read_only():
    """A run's bytes exclude the cache sizes that its steps report."""
    trace = run.run(run.CacheSettings(FIRST_GPT2, PROMPT, N_NEW))
    assert trace.nbytes == trace.keys.nbytes + trace.values.nbytes + N_NEW * 8192 * 4
    with pytest.raises(ValueError, match="read-only"):
        trace.keys[0, 0, 0, 0] = 1
    full_cache = overflow_runs.run_full_cache(trace, ROOM)
    assert overflow_runs.run_full_cache.is_cached(trace, ROOM)
    row = TOKEN_BYTES // 2
    assert overflow_runs._bytes(full_cache) == len(trace.run_ids) * row
    assert (MAX_INSIDE_PROMPT + MAX_INSIDE_TOKENS) * row < TEXTS_BYTES  # The longest text.


def test_early_end_of_text_leaves_rows_unwritten(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    # Use a new prompt, because cached runs ignore the patched end-of-text ids.
    prompt = "Two cats sat.  Two"
    tokenizer = models.get(FIRST_GPT2).tokenizer
    ids = tokenizer.encode(prompt).ids
    ends = generate(bundled_model(FIRST_GPT2).core, ids, max_new_tokens=1)
    monkeypatch.setattr(tokenizer, "end_ids", frozenset(ends))
    open_whole_page(site, PAGE, inside_the_cache_prompt=prompt, inside_the_cache_tokens="9")
    assert not site.exception
    _, buffer = maps(site)[0]
    # The buffer was allocated for the nine requested tokens.
    assert buffer.shape[0] == len(ids) + 8
    assert np.isnan(buffer[len(ids) :]).all()
    assert not np.isnan(buffer[: len(ids)]).any()
