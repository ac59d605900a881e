"""Ablation compared with a direct computation, and head rankings compared with full passes."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import Hooks, Transformer
from attention_core.analysis.ablation import (
    HeadChange,
    apply_changes,
    check_changes,
    logits_function,
    make_edit,
    prediction_effects,
    rank_heads,
    run_with_changes,
    state_effects,
    uniform_weights,
)
from attention_core.attend import attend
from attention_core.masks import causal_mask
from tests.helpers.tiny_models import build

NAMES = ["gpt2", "llama", "llama-tied", "bert"]


def random_ids(model: Transformer, n: int = 9) -> Tensor:
    return torch.randint(model.config.vocab_size, (n,), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("masked", [True, False])
def test_changes_apply_to_the_requested_heads_only(masked: bool):
    torch.manual_seed(0)
    batch, heads, kv_heads, n, size = 3, 6, 2, 5, 4
    q, k, v = (torch.randn(batch, h, n, size) for h in (heads, kv_heads, kv_heads))
    record = attend(q, k, v, mask=causal_mask(n, n) if masked else None)
    rows = [[HeadChange(0, 4, "zero")], [], [HeadChange(0, 1, "uniform"), HeadChange(0, 5)]]
    new = apply_changes(record, rows)
    repeated = v.repeat_interleave(heads // kv_heads, dim=1)
    mean = torch.stack([repeated[2, 1, : t + 1 if masked else n].mean(dim=0) for t in range(n)])
    assert_close(new.context[2, 1], mean)
    assert not new.context[0, 4].any()
    assert not new.context[2, 5].any()
    assert_close(new.context, new.weights @ repeated)
    untouched = torch.ones(batch, heads, dtype=torch.bool)
    untouched[0, 4] = untouched[2, 1] = untouched[2, 5] = False
    assert torch.equal(new.weights[untouched], record.weights[untouched])
    assert torch.equal(new.context[untouched], record.context[untouched])
    assert torch.equal(new.attention, record.attention)
    assert record.weights[0, 4].any()  # the input record is unchanged


def test_uniform_weights_of_a_fully_masked_query():
    scores = torch.tensor([[1.0, -math.inf, 7.0], [-math.inf] * 3])
    assert_close(uniform_weights(scores), torch.tensor([[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]))


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_zeroed_head_equals_zero_output_rows(name: str):
    model = build(name)
    ids, size = random_ids(model), model.config.d_head
    head = model.config.n_heads - 1
    result_rows = run_with_changes(
        model, ids, [[HeadChange(1, head)], [HeadChange(0, 0), HeadChange(1, 1)]]
    )
    for row, removed_heads in enumerate([[(1, head)], [(0, 0), (1, 1)]]):
        other = build(name)
        for layer, h in removed_heads:
            other.out_weight(layer)[h * size : (h + 1) * size] = 0.0
        assert_close(result_rows[row], other(ids[None]).hidden[0], atol=1e-5, rtol=0.0)
    assert float((result_rows[0] - model(ids[None]).hidden[0]).abs().max()) > 1e-3


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_empty_changes_are_a_no_op_and_a_pass_can_be_resumed(name: str):
    model = build(name)
    ids = random_ids(model)
    plain = model(ids[None], record=True)
    assert torch.equal(
        model(ids[None], hooks=Hooks(edit_heads=make_edit([[]]))).hidden, plain.hidden
    )
    for layer, state in enumerate(plain.hidden_states[:-1]):
        assert_close(model.resume(state, layer), plain.hidden, atol=1e-5, rtol=0.0)
    layers_run: list[int] = []
    model.resume(plain.hidden_states[1], 1, hooks=Hooks(before_layer=layers_run.append))
    assert layers_run == list(range(1, model.config.n_layers))


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize(("name", "kind"), [("llama", "uniform"), ("gpt2", "zero")])
@torch.inference_mode()
def test_ranking_equals_one_pass_per_head(
    name: str, kind: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
):
    model = build(name)
    ids, config = random_ids(model), model.config
    if batch is not None:
        numbers = batch * config.n_heads * len(ids) ** 2
        monkeypatch.setattr("attention_core.analysis.ablation._MAX_WEIGHTS", numbers)
    logits, at = logits_function(model), 6
    before = model(ids[None])
    measure = prediction_effects(logits, before.hidden[0], at)
    result = torch.full((config.n_layers, config.n_heads, 2), math.nan, dtype=torch.float64)
    layers_run: list[int] = []
    for part in rank_heads(model, ids, kind, measure, before_layer=layers_run.append):
        result[part.layer, part.first_head : part.first_head + len(part.values)] = part.values
    p = before.logits[0, at].double().softmax(-1)
    top = int(p.argmax())
    for layer in range(config.n_layers):
        for head in range(config.n_heads):
            one = make_edit([[HeadChange(layer, head, kind)]])
            after = model(ids[None], hooks=Hooks(edit_heads=one)).logits[0, at]
            expected = float((p * (p.log() - after.double().softmax(-1).log())).sum())
            assert float(result[layer, head, 0]) == pytest.approx(expected, abs=1e-5)
            change = float(after[top] - before.logits[0, at, top])
            assert float(result[layer, head, 1]) == pytest.approx(change, abs=1e-4)
    batches = -(-config.n_heads // (batch or config.n_heads))
    # ranking layer l reruns layers l and up, once per batch
    assert len(layers_run) == batches * config.n_layers * (config.n_layers + 1) // 2
    assert float(result[..., 0].max()) > 1e-2


@torch.inference_mode()
def test_later_tokens_do_not_affect_earlier_positions_of_a_decoder():
    model = build("llama")
    ids, change = random_ids(model, 11), [[HeadChange(0, 3, "uniform")]]
    whole, cut = run_with_changes(model, ids, change), run_with_changes(model, ids[:5], change)
    assert_close(whole[0, :5], cut[0], atol=1e-5, rtol=0.0)


def test_state_effects_are_mean_distances():
    states = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
    changed_states = torch.tensor([[[6.0, 8.0], [0.0, 2.0]]])
    means = torch.tensor([[0.5, (1.0 + math.sqrt(5.0)) / 2]]).double()
    assert_close(state_effects(states)(changed_states), means)


def test_rejects_invalid_arguments():
    model = build("bert")
    record = model(random_ids(model)[None], record=True).records[0]
    for message, call in {
        "-1 and 2": lambda: HeadChange(-1, 2),
        "'half'": lambda: HeadChange(0, 0, "half"),  # type: ignore[arg-type]
        "head 5.*layer 0": lambda: check_changes(model.config, [HeadChange(0, 5)]),
        "head 0.*layer 3": lambda: run_with_changes(model, random_ids(model), [[HeadChange(3, 0)]]),
        "2 rows": lambda: apply_changes(record, [[], []]),
        "got 7": lambda: apply_changes(record, [[HeadChange(0, 7)]]),
        "output matrix": lambda: logits_function(model),
        "position.*4": lambda: prediction_effects(lambda x: x, torch.ones(4, 2), 4),
        "layer.*3": lambda: model.resume(torch.ones(1, 2, 20), 3),
        "20.*21": lambda: model.resume(torch.ones(1, 2, 21), 0),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
