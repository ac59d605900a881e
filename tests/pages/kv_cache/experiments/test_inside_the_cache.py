"""The traced cache: its log matches the buffers and the forward passes."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Hooks, Transformer, generate
from attention_core.costs.formulas import cache_bytes, forward_flops
from attention_core.model.variants import with_window
from pages.kv_cache.inside_the_cache.experiment.crop import crop_and_continue
from pages.kv_cache.inside_the_cache.experiment.full_cache import (
    capacity_error,
    drift,
    ring_positions,
    run_ring,
    run_with_restarts,
    run_with_sink,
)
from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
    RecordingCache,
    compare_with_one_pass,
    last_logits,
    record_steps,
)

PROMPT = [3, 1, 4, 1, 5]
N_NEW = 7
TEXT = [*PROMPT, 9, 2, 6, 5, 3, 5, 8, 9]
ROOM = 7


def changed_rows(before: torch.Tensor, after: torch.Tensor) -> tuple[int, ...]:
    """Indices of the rows of (L, H_kv, N, D) buffers that differ."""
    return tuple((before != after).any(-1).any(0).any(0).nonzero().flatten().tolist())


def test_trace_records_every_step(decoder: Transformer):
    n_rows = len(PROMPT) + N_NEW - 1
    cache, plain = RecordingCache.for_model(decoder, n_rows), decoder.new_cache(1, n_rows)
    assert cache.nbytes == plain.nbytes
    before, snapshots, generated = cache.contents(), [], []
    for index, step in enumerate(record_steps(decoder, PROMPT, cache, max_new_tokens=N_NEW)):
        after = cache.contents()
        length = len(PROMPT) + index
        assert changed_rows(before[0], after[0]) == step.access.rows_written
        assert changed_rows(before[1], after[1]) == step.access.rows_written
        assert step.access.read == range(length)
        assert step.access.new == (range(length) if index == 0 else range(length - 1, length))
        one = cache_bytes(decoder.config, 1, bytes_per_value=4)
        assert step.access.bytes_written == one * len(step.access.written)
        assert step.access.bytes_read == step.nbytes_used == one * length
        assert step.nbytes == one * n_rows
        assert step.flops == forward_flops(decoder.config, 1 if index else length, length)
        generated.append(step)
        snapshots.append(after)
        before = after
    new = [step.token_id for step in generated]
    for index, step in enumerate(compare_with_one_pass(decoder, PROMPT, generated)):
        length = len(PROMPT) + index
        cached = generated[index]
        assert vars(step).items() >= vars(replace(cached, logits=step.logits)).items()
        # A pass over the text up to this step.
        logits = decoder(torch.tensor([[*PROMPT, *new[:index]]])).logits[0, -1]
        assert_close(cached.logits, logits, atol=1e-5, rtol=0)
        assert_close(step.logits, logits, atol=1e-5, rtol=0)
        assert step.difference == float((cached.logits - step.logits).abs().max()) < 1e-4
        assert step.uncached_token_id == step.token_id == int(logits.argmax())
        assert step.uncached_flops == forward_flops(decoder.config, length, length)
        assert step.uncached_rows == length
    assert new == generate(decoder, PROMPT, max_new_tokens=N_NEW)
    for index, (keys, values) in enumerate(snapshots):  # Rows never change after they are written.
        length = len(PROMPT) + index
        assert torch.equal(keys[:, :, :length], before[0][:, :, :length])
        assert torch.equal(values[:, :, :length], before[1][:, :, :length])
        assert not keys[:, :, length:].any()
    record = decoder(torch.tensor([[*PROMPT, *new[:-1]]]), record=True).records
    assert_close(before[0], torch.cat([r.k for r in record]), atol=1e-5, rtol=0)
    assert_close(before[1], torch.cat([r.v for r in record]), atol=1e-5, rtol=0)


def test_corrupted_row_shows_as_a_difference(decoder: Transformer):
    cache = RecordingCache.for_model(decoder, 12)
    steps = record_steps(decoder, PROMPT, cache, max_new_tokens=3)
    first = next(steps)
    cache.buffers[1][0][:, :, 2] += 1
    compared = compare_with_one_pass(decoder, PROMPT, [first, *steps])
    assert compared[0].difference < 1e-4
    assert compared[1].difference > 1e-2


def test_abandoned_pass_is_not_recorded(decoder: Transformer):
    cache = RecordingCache.for_model(decoder, 9)

    def stop(layer: int) -> None:
        if layer == 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        last_logits(decoder, PROMPT, cache=cache, hooks=Hooks(before_layer=stop))
    assert cache.accesses == []
    last_logits(decoder, PROMPT, cache=cache)
    assert [access.written for access in cache.accesses] == [range(5)]


def test_crop_keeps_the_buffer_and_reuses_rows(decoder: Transformer):
    cache = RecordingCache.for_model(decoder, 9)
    last_logits(decoder, TEXT[:9], cache=cache)
    rows, other = cache.contents(), [7, 7, 2]
    result = crop_and_continue(decoder, TEXT[:9], rows, 4, other)
    assert torch.equal(result.before[0], rows[0])
    assert torch.equal(result.before[1], rows[1])
    assert torch.equal(result.cropped[0], rows[0])  # Cropping doesn't erase anything.
    assert (
        changed_rows(result.cropped[0], result.after[0]) == result.access.rows_written == (4, 5, 6)
    )
    # Left over from before the crop.
    assert torch.equal(result.after[1][:, :, 7:], rows[1][:, :, 7:])
    one = cache_bytes(decoder.config, 1, bytes_per_value=4)
    assert (result.nbytes, result.nbytes_used) == (9 * one, (9 * one, 4 * one, 7 * one))
    assert (result.n_before, result.n_kept, result.n_after) == (9, 4, 7)
    assert result.difference < 1e-4
    assert result.next_id == result.fresh_id
    fresh = decoder(torch.tensor([[*TEXT[:4], *other]])).logits[0, -1]
    assert result.fresh_id == int(fresh.argmax())
    assert result.flops < result.fresh_flops
    longer = crop_and_continue(decoder, TEXT[:9], rows, 9, other)
    assert longer.after[0].shape[2] == longer.n_after == 12
    corrupted = (rows[0], rows[1] + 1)  # A wrong value in the reused rows would change the result.
    assert crop_and_continue(decoder, TEXT[:9], corrupted, 4, other).difference > 1e-2
    with pytest.raises(ValueError, match="9 tokens to 10"):
        crop_and_continue(decoder, TEXT[:9], rows, 10, other)


def test_full_cache_restarts_from_its_last_half(decoder: Transformer):
    assert f"{ROOM} of at most {ROOM} tokens" in capacity_error(decoder, TEXT, ROOM)
    passes = list(run_with_restarts(decoder, TEXT, len(PROMPT), ROOM))
    # 5, 6 and 7 tokens, then 3 that are reused plus 1 new one, and so on.
    assert [one.n_visible for one in passes] == [5, 6, 7, 4, 5, 6, 7, 4, 5]
    assert [one.n_run for one in passes] == [5, 1, 1, 4, 1, 1, 1, 4, 1]
    assert [one.is_recomputed for one in passes] == [n == 4 for n in [5, 1, 1, 4, 1, 1, 1, 4, 1]]
    for one in passes:
        visible = TEXT[one.position + 1 - one.n_visible : one.position + 1]
        assert_close(one.logits, last_logits(decoder, visible), atol=1e-5, rtol=0)
        assert one.flops == forward_flops(decoder.config, one.n_run, one.n_visible)
    for capacity in (4, 13):  # Less than the prompt, and as much as the whole text.
        with pytest.raises(ValueError, match=f"cache of {capacity} rows"):
            list(run_with_restarts(decoder, TEXT, len(PROMPT), capacity))


def test_ring_overwrites_rows_in_order(decoder: Transformer):
    model = with_window(decoder, ROOM)
    assert model.config == replace(decoder.config, window=ROOM)
    own = dict(decoder.named_parameters())
    assert all(p.data_ptr() == own[name].data_ptr() for name, p in model.named_parameters())
    cache = RecordingCache.for_model(model, len(TEXT))
    assert cache.n_rows == ROOM
    before = cache.contents()
    rows = torch.full((*before[0].shape[:2], len(TEXT), before[0].shape[3]), float("nan"))
    for one in run_ring(model, TEXT, len(PROMPT), cache):
        after, length = cache.contents(), one.position + 1
        assert one.access is not None
        assert changed_rows(before[0], after[0]) == one.access.rows_written
        assert one.nbytes == cache_bytes(model.config, length + ROOM, bytes_per_value=4)
        rows[:, :, list(one.access.written)] = after[0][:, :, list(one.access.rows_written)]
        places = ring_positions(length, ROOM)
        for row, position in enumerate(places):
            if position is None:
                assert not after[0][:, :, row].any()
            else:
                assert row == position % ROOM
                assert torch.equal(after[0][:, :, row], rows[:, :, position])
        full_pass = last_logits(model, TEXT[:length])  # The same window as a mask, without a cache.
        assert_close(one.logits, full_pass, atol=1e-5, rtol=0)
        assert one.n_visible == min(length, ROOM)
        before = after
    assert ring_positions(0, 3) == (None, None, None)
    assert ring_positions(8, 3) == (6, 7, 5)


def test_attention_sink_rows_with_a_window(decoder: Transformer):
    passes = list(run_with_sink(decoder, TEXT, len(PROMPT), ROOM, 2))
    assert [one.n_visible for one in passes] == [5, 6, *[ROOM] * 7]
    full = [last_logits(decoder, TEXT[: one.position + 1]) for one in passes]
    for one, reference in zip(passes[:3], full, strict=False):  # Everything still fits.
        assert_close(one.logits, reference, atol=1e-5, rtol=0)
    assert drift(passes[-1].logits, full[-1]).largest > 1e-3
    # Without sink rows this is the plain window, which saw the whole prompt.
    without = list(run_with_sink(decoder, TEXT, len(PROMPT), ROOM, 0))
    model = with_window(decoder, ROOM)
    cache = RecordingCache.for_model(model, len(TEXT))
    for one, ring in zip(without, run_ring(model, TEXT, len(PROMPT), cache), strict=True):
        assert_close(one.logits, ring.logits, atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="got 7"):
        list(run_with_sink(decoder, TEXT, len(PROMPT), ROOM, 7))


def test_drift():
    reference = torch.tensor([2.0, 0.0, 1.0])
    assert drift(reference, reference).largest == drift(reference, reference).divergence == 0
    result = drift(torch.tensor([0.0, 0.5, 1.0]), reference)
    p, q = reference.softmax(-1), torch.tensor([0.0, 0.5, 1.0]).softmax(-1)
    assert result.largest == 2.0
    assert result.divergence == pytest.approx(float((p * (p / q).log()).sum()), abs=1e-6)
    assert (result.token_id, result.same_token) == (2, False)
