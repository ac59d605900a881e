"""Test the forward pass that all pages share, as tensors and as arrays over the same memory."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from serving import compute, models, runs
from serving.cache import Cache, cached, size_of
from serving.limits import OverLimit
from tests.helpers.bundled_models import DECODER, ENCODER

TEXT = "Nine grey geese fly"


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_run_contains_the_models_record(name: str):
    run = runs.run(name, TEXT)
    core = models.get(name).core
    with torch.inference_mode():
        output = core(torch.tensor([run.tokens.ids]), record=True)
    tensors = run.tensors
    for layer, record in enumerate(output.records):
        for part in ("weights", "q", "k", "v"):
            torch.testing.assert_close(
                getattr(tensors, part)[layer], getattr(record, part)[0], rtol=0, atol=0
            )
    torch.testing.assert_close(tensors.states, torch.cat(output.hidden_states), rtol=0, atol=0)
    assert run.causal == core.config.causal
    assert run.model == name
    assert run.model_key == (*models.key(name), "cpu", "torch.float32")
    assert run.key == (*run.model_key, TEXT)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_recomputed_head_matches_the_record(name: str):
    run = runs.run(name, TEXT)
    with torch.inference_mode():
        records = models.get(name).core(torch.tensor([run.tokens.ids]), record=True).records
    n_layers, n_heads = run.weights.shape[:2]
    for layer, head in ((0, 0), (2, n_heads - 1), (n_layers - 1, 4)):
        recomputed, record = run.head(layer, head), records[layer]
        for part in ("scores", "masked_scores", "scaled_scores", "weights", "context"):
            torch.testing.assert_close(
                getattr(recomputed, part), getattr(record, part)[0, head], rtol=1e-5, atol=1e-5
            )
        assert recomputed.scale == record.scale


def test_arrays_are_read_only_views():
    run = runs.run(ENCODER, TEXT)
    for part in ("weights", "q", "k", "v", "value_norms"):
        array = getattr(run, part)
        assert np.shares_memory(array, getattr(run, part))
        assert np.shares_memory(array, getattr(run.tensors, part).numpy())
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_pages_share_a_run_with_separate_limits():
    runs.run_forward.clear()
    run = runs.run(DECODER, TEXT)
    assert runs.run(DECODER, TEXT, 12, "a small picture") is run
    assert runs.run_forward.nbytes == size_of(run.tensors)
    with pytest.raises(OverLimit, match="2.*a small picture"):
        runs.run(DECODER, TEXT, 2, "a small picture")


@pytest.mark.parametrize("in_a_slot", [False, True])
def test_evicted_run_is_recomputed(in_a_slot: bool):
    run = runs.run(ENCODER, TEXT)
    before = run.weights.copy()
    tensors = weakref.ref(run.tensors)
    runs.run_forward.clear()
    gc.collect()
    assert tensors() is None  # holding the run doesn't keep its memory alive
    with compute.slot() if in_a_slot else nullcontext():
        np.testing.assert_array_equal(run.weights, before)
        recomputed = run.tensors
        assert run.tensors is recomputed  # it's cached, not recorded for every use
    assert runs.run(ENCODER, TEXT).tensors is recomputed


def test_evicted_run_releases_its_memory(monkeypatch: pytest.MonkeyPatch):
    texts = [f"{TEXT} {word}" for word in ("east", "west", "home")]
    limit = 2 * size_of(runs.run(ENCODER, texts[0]).tensors) + 100
    small = cached(
        key=lambda key, *_: key, size=lambda run: size_of(run.tensors), cache=Cache(limit)
    )
    monkeypatch.setattr(runs, "run_forward", small(runs.run_forward.__wrapped__))
    first, second, third = (runs.run(ENCODER, text) for text in texts)
    assert [run.slot.tensors is None for run in (first, second, third)] == [True, False, False]
    assert first.tensors is runs.run(ENCODER, texts[0]).tensors
    assert second.slot.tensors is None
