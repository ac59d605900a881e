"""Hooks: attention edits change the result, and invalid hooks are rejected."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import AttentionRecord, Hooks, Transformer, attend, causal_mask, stream
from attention_core.attend import recompute_after
from attention_core.heads import merge_heads
from attention_core.speed.batching import stream_batch
from attention_core.speed.decoder import Decoder
from tests.helpers.attention_variants import LATENT, enlarged_model
from tests.helpers.tiny_models import TINY

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
CONFIGS = {**TINY, "window": replace(TINY["llama"], window=3), **LATENT}
CAUSAL = [name for name, config in CONFIGS.items() if config.causal]
# all steps, in the order of computation
STEPS = ["q", "k", "v", "scores", "masked_scores", "scaled_scores"]
STEPS += ["attention", "weights", "context"]
EDITED_LAYER = 1


def random_ids(model: Transformer, batch: int = 2, length: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


def halve(step: str) -> Hooks:
    """Return hooks that halve one step in one layer; minus infinity is unaffected."""

    def edit(layer: int, record: AttentionRecord) -> AttentionRecord | None:
        if layer != EDITED_LAYER:
            return None
        return replace(record, **{step: getattr(record, step) * 0.5})

    return Hooks(edit_heads=edit)


def expected_steps(record: AttentionRecord, step: str) -> dict[str, Tensor]:
    """Recompute all steps after halving one, with repeated keys and plain products."""
    group = record.q.shape[1] // record.k.shape[1]
    steps = {name: getattr(record, name) for name in STEPS}
    steps[step] = steps[step] * 0.5
    k, v = (steps[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
    hidden = record.masked_scores == -math.inf
    compute: dict[str, Callable[[], Tensor]] = {
        "scores": lambda: torch.einsum("bhtd,bhsd->bhts", steps["q"], k),
        "masked_scores": lambda: steps["scores"].masked_fill(hidden, -math.inf),
        "scaled_scores": lambda: steps["masked_scores"] * record.scale,
        "attention": lambda: steps["scaled_scores"].softmax(-1),
        "weights": lambda: steps["attention"],
        "context": lambda: torch.einsum("bhts,bhsd->bhtd", steps["weights"], v),
    }
    for name in STEPS[3:]:
        if STEPS.index(name) > STEPS.index(step):
            steps[name] = compute[name]()
    return steps


@pytest.mark.parametrize("mode", ["plain", "inference", "cache"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", CONFIGS)
def test_edit_of_any_step_changes_the_result_and_the_record(name: str, step: str, mode: str):
    if mode == "cache" and not CONFIGS[name].causal:
        pytest.skip("a bidirectional model has no cache")
    model = enlarged_model(CONFIGS[name])
    ids = random_ids(model)
    cache = model.new_cache(2, 9) if mode == "cache" else None
    plain = model(ids, record=True)
    with torch.inference_mode(mode == "inference"):
        edited = model(ids, record=True, hooks=halve(step), cache=cache)
    record = edited.records[EDITED_LAYER]
    expected = expected_steps(plain.records[EDITED_LAYER], step)
    for other in STEPS:
        assert_close(getattr(record, other), expected[other], **CLOSE)
    layer = model.blocks[EDITED_LAYER].attention
    bias = 0.0 if layer.out.bias is None else layer.out.bias
    output = merge_heads(record.context) @ layer.out_weight() + bias
    assert_close(record.output, output, **CLOSE)
    assert not torch.allclose(edited.hidden, plain.hidden, **CLOSE)
    assert_close(edited.records[0].context, plain.records[0].context, **CLOSE)


def test_two_steps_can_be_edited():
    q, k, v = torch.randn(3, 2, 5, 4).unbind()
    record = attend(q, k, v, mask=causal_mask(5, 5))
    ones = torch.ones_like(record.context)
    own = replace(record, scores=record.scores * 2, context=ones)
    result = recompute_after(own, record, causal_mask(5, 5))
    assert result.context is ones
    assert_close(result.weights, (record.scaled_scores * 2).softmax(-1))


def test_edited_scale_changes_the_softmax():
    q, k, v = torch.randn(3, 2, 5, 4).unbind()
    record = attend(q, k, v, mask=causal_mask(5, 5))
    result = recompute_after(replace(record, scale=2.0), record, causal_mask(5, 5))
    expected = attend(q, k, v, mask=causal_mask(5, 5), scale=2.0)
    for step in STEPS:
        assert_close(getattr(result, step), getattr(expected, step))


@pytest.mark.parametrize("case", ["none", "the same record", "equal steps"])
@pytest.mark.parametrize("name", CONFIGS)
def test_no_op_hook_gives_identical_results(name: str, case: str):
    model = enlarged_model(CONFIGS[name])
    ids = random_ids(model)
    answers = {
        "none": lambda record: None,
        "the same record": lambda record: record,
        "equal steps": lambda record: replace(record, context=record.context.clone()),
    }
    hooks = Hooks(edit_heads=lambda layer, record: answers[case](record))
    assert torch.equal(model(ids, hooks=hooks).hidden, model(ids, record=True).hidden)


@pytest.mark.parametrize("step", ["k", "v"])
@pytest.mark.parametrize("name", CAUSAL)
def test_edited_keys_and_values_do_not_reach_the_cache(name: str, step: str):
    model = enlarged_model(CONFIGS[name])
    ids = random_ids(model)
    caches = [model.new_cache(2, 9) for _ in range(2)]
    for cache in caches:
        model(ids[:, :4], cache=cache)
    with torch.inference_mode():
        model(ids[:, 4:6], cache=caches[0], hooks=replace_first_rows(step))
        model(ids[:, 4:6], cache=caches[1])
    # only in the first layer, because later layers read edited values
    assert all(map(torch.equal, caches[0].layer(0), caches[1].layer(0)))


def replace_first_rows(step: str) -> Hooks:
    def edit(layer: int, record: AttentionRecord) -> AttentionRecord:
        changed = getattr(record, step).clone()
        changed[:, :, 0] = 7.0
        return replace(record, **{step: changed})

    return Hooks(edit_heads=edit)


# entry points that take hooks
ENTRIES: dict[str, Callable[[Transformer, Tensor, Any], Any]] = {
    "forward": lambda model, ids, hooks: model(ids, hooks=hooks),
    "resume": lambda model, ids, hooks: model.resume(
        torch.randn(2, 7, model.config.d_model), 0, hooks=hooks
    ),
    "stream": lambda model, ids, hooks: list(stream(model, ids[0], max_new_tokens=2, hooks=hooks)),
    "stream_batch": lambda model, ids, hooks: list(
        stream_batch(model, ids.tolist(), max_new_tokens=2, hooks=hooks)
    ),
    "fixed-shape decoder": lambda model, ids, hooks: list(
        Decoder(model, 9).stream(ids[0], max_new_tokens=2, hooks=hooks)
    ),
}
every_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())


@every_entry
def test_rejects_invalid_hooks(entry: Callable[..., Any]):
    model = enlarged_model(TINY["gpt2"])
    with pytest.raises(ValueError, match=r"Hooks.*dict"):
        entry(model, random_ids(model), {"edit_heads": print})


@pytest.mark.parametrize("name", ["before_layer", "edit_heads"])
def test_rejects_hooks_that_are_not_callable(name: str):
    with pytest.raises(ValueError, match=name):
        Hooks(**{name: 5})


INVALID_RESULTS: dict[str, tuple[Callable[[AttentionRecord], Any], str]] = {
    "a tensor": (lambda r: r.context, "Tensor"),
    "no context": (lambda r: replace(r, context=None), "context.*NoneType"),
    "weights of one head": (
        lambda r: replace(r, weights=r.weights[:, :1]),
        r"weights.*\(\d, 4, \d, \d\).*\(\d, 1, \d, \d\)",
    ),
    "keys of other tokens": (lambda r: replace(r, k=r.k[:, :, 1:]), r"\bk\b.*6\).*6\)"),
    "another dtype": (lambda r: replace(r, q=r.q.double()), "q .*float32.*float64"),
    "another device": (lambda r: replace(r, v=r.v.to("meta")), "v .*cpu.*meta"),
    "NaN scale": (lambda r: replace(r, scale=math.nan), "scale .*nan"),
}


@pytest.mark.parametrize("case", INVALID_RESULTS)
def test_rejects_invalid_hook_results(case: str):
    model = enlarged_model(TINY["gpt2"])
    make, details = INVALID_RESULTS[case]
    hooks = Hooks(edit_heads=lambda layer, record: make(record) if layer == 1 else None)
    with pytest.raises(ValueError, match=details) as error:
        model(random_ids(model), hooks=hooks)
    assert "layer 1" in str(error.value)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("inference", [False, True])
def test_rejects_in_place_edits_of_the_record(step: str, inference: bool):
    """An in-place edit would change one step but not the ones computed from it."""
    model = enlarged_model(TINY["gpt2"])

    def write(layer: int, record: AttentionRecord) -> None:
        if layer == 1:
            getattr(record, step)[:, 0] = 0.0

    with torch.inference_mode(inference), pytest.raises(ValueError, match=rf"{step}\b.*layer 1"):
        model(random_ids(model), hooks=Hooks(edit_heads=write))


@pytest.mark.parametrize("name", CAUSAL)
def test_rejected_edit_leaves_the_cache_unchanged(name: str):
    model = enlarged_model(CONFIGS[name])
    ids = random_ids(model)
    cache = model.new_cache(2, 9)
    model(ids[:, :4], cache=cache)
    before = [tensor.clone() for tensor in cache.layer(0)]

    def write(layer: int, record: AttentionRecord) -> None:
        record.k.zero_()
        record.v.zero_()

    with pytest.raises(ValueError, match="layer 0"):
        model(ids[:, 4:], cache=cache, hooks=Hooks(edit_heads=write))
    assert cache.length == 4
    assert all(map(torch.equal, before, cache.layer(0)))


@pytest.mark.parametrize("step", STEPS)
def test_gradients_flow_through_an_edit(step: str):
    model = enlarged_model(
        CONFIGS["bert"]
    )  # no mask, because 0 times minus infinity has no gradient
    factor = torch.ones((), requires_grad=True)
    hooks = Hooks(
        edit_heads=lambda layer, record: replace(record, **{step: getattr(record, step) * factor})
    )
    model(random_ids(model), hooks=hooks).hidden.square().sum().backward()
    assert factor.grad is not None
    assert factor.grad.isfinite()
    assert factor.grad != 0
