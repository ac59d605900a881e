"""PyTorch's forward hooks run for every part, and the record reflects them."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention_core import Transformer
from attention_core.model.block import LayerRecord
from attention_core.model.output import TransformerOutput
from attention_core.speed.int8 import Int8Transformer
from tests.helpers.attention_variants import LATENT, enlarged_model
from tests.helpers.tiny_models import TINY

B, T = 2, 7
CONFIGS = {**TINY, "relu": replace(TINY["gpt2"], activation="relu"), **LATENT}
INT8 = [f"{name} in 8 bits" for name in TINY]


def build_model(name: str) -> Transformer:
    if name in INT8:
        return Int8Transformer(enlarged_model(CONFIGS[name.removesuffix(" in 8 bits")]))
    return enlarged_model(CONFIGS[name])


def random_ids(model: Transformer) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(model.config.vocab_size, (B, T), generator=generator)


def modules(name: str) -> dict[str, nn.Module]:
    """Return every module that a pass calls, without lists and weight matrices."""
    model = build_model(name)
    absorbed = model.config.latent is not None and model.config.latent.absorbed
    return {
        part: module
        for part, module in model.named_modules()
        if not isinstance(module, nn.ModuleList) and not (absorbed and part.endswith("kv_up"))
    }


EVERY = [(name, part) for name in (*CONFIGS, *INT8) for part in modules(name)]
TENSORS = [(name, part) for name, part in EVERY if part]  # the model returns several tensors
# a recorded pass doesn't use the fused kernel, so its rounding differs
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.mark.parametrize(("name", "part"), EVERY)
def test_each_hook_runs_once_per_pass(name: str, part: str):
    model, calls = build_model(name), list[tuple[Any, ...]]()
    model.get_submodule(part).register_forward_hook(lambda *call: calls.append(call))
    for record in (False, True):
        calls.clear()
        model(random_ids(model), record=record)
        assert len(calls) == 1
    if (name, part) in TENSORS:
        _, inputs, output = calls[0]
        assert type(inputs[0]) is type(output) is Tensor
        if part.endswith("mlp"):
            assert inputs[0].shape == output.shape == (B, T, model.config.d_model)


@pytest.mark.parametrize(("name", "part"), TENSORS)
def test_replaced_output_changes_the_result_and_the_record(name: str, part: str):
    model = build_model(name)
    ids = random_ids(model)
    plain = model(ids, record=True)
    hook = model.get_submodule(part).register_forward_hook(
        lambda module, inputs, output: torch.zeros_like(output)
    )
    changed = model(ids, record=True)
    result = "hidden" if plain.logits is None else "logits"
    assert not torch.allclose(getattr(changed, result), getattr(plain, result), atol=1e-5)
    torch.testing.assert_close(getattr(changed, result), getattr(model(ids), result), **CLOSE)
    assert all(not tensor.any() for tensor in affected_tensors(changed, part, model))
    assert any(tensor.any() for tensor in affected_tensors(plain, part, model))
    hook.remove()
    check_sums(changed, model)


def affected_tensors(output: TransformerOutput, part: str, model: Transformer) -> list[Tensor]:
    """Return the recorded tensors that are zero if the part's output is zero."""
    assert output.embedding is not None
    assert output.logits is not None or model.config.output == "none"
    whole = {"embedding_norm": output.embedding.layer_input, "final_norm": output.hidden}
    if part in whole:
        return [whole[part]]
    if part == "output_matrix":
        return [output.logits]
    _, number, *inside = part.split(".", 2)
    layer, post = output.layers[int(number)], model.config.norm_order == "post"
    heads = layer.attention
    if not inside:
        return [layer.output]
    return {
        "attention": [heads.output],
        "attention_norm": [layer.mlp_reads if post else layer.attention_reads],
        "mlp_norm": [layer.output if post else layer.mlp_reads],
        "attention.qkv": [heads.projected, heads.q, heads.k, heads.v],
        "attention.q_down": [heads.q],
        "attention.q_norm": [heads.q],
        "attention.q_up": [heads.q],
        "attention.kv_down": [heads.k, heads.v],
        "attention.kv_norm": [heads.v],
        "attention.kv_up": [heads.v],
        "attention.out": [heads.output],
        "mlp": [layer.mlp_output],
        "mlp.up": [layer.mlp_hidden],
        "mlp.gate": [layer.mlp_hidden],
        "mlp.down": [layer.mlp_output],
    }[inside[0]]


def check_sums(output: TransformerOutput, model: Transformer) -> None:
    """Check that each layer adds its parts' outputs and passes the sum on."""
    for layer in output.layers:
        assert torch.equal(layer.attention_sum, layer.input + layer.attention.output)
        stream = layer.mlp_reads if model.config.norm_order == "post" else layer.attention_sum
        assert torch.equal(layer.mlp_sum, stream + layer.mlp_output)
    for layer, after in zip(output.layers, output.layers[1:], strict=False):
        assert torch.equal(layer.output, after.input)


@pytest.mark.parametrize("name", [name for name, config in CONFIGS.items() if config.causal])
def test_hooks_run_with_a_cache_and_in_resume(name: str):
    model, calls = build_model(name), list[str]()
    for part in modules(name):
        model.get_submodule(part).register_forward_hook(
            lambda *_, part=part: calls.append(part)  # type: ignore[misc]
        )
    cache = model.new_cache(B, T)
    for ids in random_ids(model).split(4, dim=1):
        calls.clear()
        model(ids, cache=cache)
        assert sorted(calls) == sorted(modules(name))
    calls.clear()
    model.resume(torch.randn(B, T, model.config.d_model), 1)
    assert not any(part.startswith("blocks.0") for part in calls)
    assert len(set(calls)) == len(calls) > 0


def test_part_reads_the_input_that_a_pre_hook_replaced():
    model = build_model("gpt2")
    ids = random_ids(model)
    model.blocks[1].mlp.register_forward_pre_hook(lambda module, inputs: inputs[0] * 0)
    layer: LayerRecord = model(ids, record=True).layers[1]
    block = model.blocks[1]
    assert torch.equal(layer.mlp_hidden, block.mlp.hidden(torch.zeros(B, T, model.config.d_model)))
    assert torch.equal(layer.mlp_reads, block.mlp_norm(layer.attention_sum))
