"""Generation that records the attention rows of every step."""

import gc

import pytest
import torch
from torch.testing import assert_close

from attention_core import AttentionRecord, Hooks, Sampling, Transformer, generate
from attention_core.analysis.contributions import value_norms
from pages.compare.generated_tokens.experiment.trace import average_map, trace

PROMPT = [3, 1, 4, 1, 5]
N_NEW = 7
N_RUN = len(PROMPT) + N_NEW - 1


def test_step_rows_match_a_full_pass(decoder: Transformer):
    result = trace(decoder, PROMPT, max_new_tokens=N_NEW)
    ids = torch.tensor([result.ids[:-1]])
    full_pass = decoder(ids, record=True)
    expected = torch.cat([record.weights for record in full_pass.records])
    config = decoder.config
    assert result.weights.shape == (config.n_layers, config.n_heads, N_RUN, N_RUN)
    assert_close(result.weights, expected, atol=1e-5, rtol=0)
    assert_close(result.weights.sum(-1), torch.ones_like(result.weights[..., 0]))
    norms = [value_norms(r.v, decoder.out_weight(i)) for i, r in enumerate(full_pass.records)]
    assert_close(result.value_norms, torch.cat(norms), atol=1e-4, rtol=1e-5)
    for step in range(N_NEW):
        query = len(PROMPT) + step - 1
        assert_close(result.row(step), expected[:, :, query, : query + 1], atol=1e-5, rtol=0)
        logprobs = torch.log_softmax(full_pass.logits[0, query], -1)
        assert result.logprobs[step] == pytest.approx(float(logprobs[result.new[step]]), abs=1e-4)
        assert_close(result.alternative_logprobs[step], logprobs.topk(5).values, atol=1e-4, rtol=0)


def test_greedy_picks_the_top_candidate_like_generate(decoder: Transformer):
    result = trace(decoder, PROMPT, max_new_tokens=N_NEW)
    assert result.alternative_ids.shape == (N_NEW, 5)
    assert result.alternative_ids[:, 0].tolist() == list(result.new)
    assert list(result.new) == generate(decoder, PROMPT, max_new_tokens=N_NEW)


def test_sampling_is_reproducible(decoder: Transformer):
    def sample_ids(seed: int) -> tuple[int, ...]:
        sampling = Sampling(temperature=2.0, seed=seed)
        return trace(decoder, PROMPT, max_new_tokens=12, sampling=sampling).new

    assert sample_ids(1) == sample_ids(1) != sample_ids(2)


def test_early_end_of_text_returns_only_completed_steps(decoder: Transformer):
    free = trace(decoder, PROMPT, max_new_tokens=12)
    stop = free.new[3]
    result = trace(decoder, PROMPT, max_new_tokens=12, stop_ids={stop})
    n_steps = free.new.index(stop) + 1
    assert result.new == free.new[:n_steps]
    n_run = len(PROMPT) + n_steps - 1
    assert result.weights.shape[-2:] == (n_run, n_run)
    assert result.value_norms.shape[-1] == n_run
    assert_close(result.weights, free.weights[:, :, :n_run, :n_run])


def test_at_most_two_passes_stay_in_memory(decoder: Transformer):
    record_counts: list[int] = []

    def records() -> int:
        return sum(type(one) is AttentionRecord for one in gc.get_objects())

    gc.freeze()  # Leave existing objects out of the count and out of collection.
    trace(decoder, PROMPT, max_new_tokens=N_NEW, on_step=lambda _: record_counts.append(records()))
    assert 0 < max(record_counts) <= 2 * decoder.config.n_layers


def test_limits_are_checked_before_the_model_runs(decoder: Transformer):
    def fail(_: int) -> None:
        raise AssertionError("a layer ran")

    never = Hooks(before_layer=fail)
    config = decoder.config
    required_bytes = config.n_layers * config.n_heads * N_RUN**2 * 4
    with pytest.raises(ValueError, match=f"{required_bytes:,} bytes"):
        trace(decoder, PROMPT, max_new_tokens=N_NEW, max_bytes=required_bytes - 1, hooks=never)
    assert trace(decoder, PROMPT, max_new_tokens=N_NEW, max_bytes=required_bytes).n_steps == N_NEW
    with pytest.raises(ValueError, match="context length"):
        trace(decoder, PROMPT, max_new_tokens=config.context_length, hooks=never)
    with pytest.raises(ValueError, match="got 2"):
        trace(decoder, PROMPT, max_new_tokens=2).row(2)


def test_head_and_layer_means():
    weights = torch.rand(3, 4, 5, 6)
    assert_close(average_map(weights, 1, 2), weights[1, 2])
    assert_close(average_map(weights, 1, None), weights[1].sum(0) / 4)
    assert_close(average_map(weights, None, None), weights.sum((0, 1)) / 12)
    with pytest.raises(ValueError, match="layer 3, head 0"):
        average_map(weights, 3, 0)
