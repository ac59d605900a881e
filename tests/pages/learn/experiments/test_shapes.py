"""The eleven steps match the forward pass bit for bit, and cells are traceable."""

import random

import pytest
import torch
from torch.testing import assert_close

from attention_core.ladder import MultiHeadAttention
from attention_core.seeding import seeded
from pages.learn.shapes.experiment.mistakes import view_without_contiguous_error
from pages.learn.shapes.experiment.named_tensors import ShapeStep
from pages.learn.shapes.experiment.steps import layer_steps, multi_head_steps, random_embeddings
from tests.helpers.lectures import LECTURE_NUMBERS
from tests.helpers.tiny_models import TINY, build

LECTURE = LECTURE_NUMBERS["000_weight_splits"]
THREE = ("queries", "keys", "values")


def configurations(count: int) -> list[dict]:
    """Sizes that differ from each other, with every head count from 1 to 16."""
    rng = random.Random(0)
    results: list[dict] = []
    while len(results) < count:
        heads = 1 + len(results) % 16
        sizes = {
            "batch": rng.randint(1, 3),
            "tokens": rng.randint(1, 13),
            "d_in": rng.randint(1, 40),
            "head_dim": rng.randint(1, 17),
        }
        distinct = [*sizes.values(), heads, heads * sizes["head_dim"]]
        # In these cases, d_out equals one of the other sizes.
        if heads == 1 or sizes["head_dim"] == 1:
            distinct.pop()
        if len(set(distinct)) == len(distinct):
            dropout = rng.choice([0.0, 0.3])
            results.append(
                {
                    **sizes,
                    "heads": heads,
                    "causal": bool(len(results) % 2),
                    "bias": rng.random() < 0.5,
                    "dropout": dropout,
                }
            )
    return results


def build_attention(sizes: dict, seed: int) -> tuple[MultiHeadAttention, torch.Tensor]:
    with seeded(seed):
        attention = MultiHeadAttention(
            sizes["d_in"],
            sizes["heads"] * sizes["head_dim"],
            sizes["tokens"],
            sizes["dropout"],
            sizes["heads"],
            sizes["bias"],
            causal=sizes["causal"],
        )
        x = torch.randn(sizes["batch"], sizes["tokens"], sizes["d_in"])
    return attention.requires_grad_(False), x


@pytest.mark.parametrize("seed", range(50))
def test_steps_chain_to_the_forward_pass(seed: int):
    sizes = configurations(50)[seed]
    attention, x = build_attention(sizes, seed)
    attention.eval()
    steps = multi_head_steps(attention, x)
    assert [step.number for step in steps] == list(range(1, 12))
    assert torch.equal(steps[-1]["output"].tensor, attention(x))
    check_each_step(steps, attention, x, sizes)

    attention.train()
    with seeded(seed):
        steps = multi_head_steps(attention, x)
    with seeded(seed):
        expected = attention.record(x)
    assert expected.output is not None
    assert torch.equal(steps[-1]["output"].tensor, expected.output)
    weights = steps[7].tensors[-1].tensor
    assert torch.equal(weights, expected.weights)
    assert (steps[7].tensors[-1].name == "after dropout") == (sizes["dropout"] > 0)
    assert torch.equal(steps[8]["context"].tensor, weights @ steps[5]["values"].tensor)


def check_each_step(
    steps: tuple[ShapeStep, ...], attention: MultiHeadAttention, x: torch.Tensor, sizes: dict
) -> None:
    """Recompute each step's tensors from the previous steps in a different way."""
    b, t, h, d = (sizes[name] for name in ("batch", "tokens", "heads", "head_dim"))
    record = attention.record(x)
    assert torch.equal(steps[0]["input"].tensor, x)
    assert steps[1]["columns"].tensor.tolist() == [
        [head * d + i for i in range(d)] for head in range(h)
    ]
    assert torch.equal(steps[2]["W_out"].tensor, attention.out_proj.weight.T)
    for name, matrix in zip(THREE, steps[2].tensors[:3], strict=True):
        linear = getattr(attention, f"W_{name.removesuffix('s').replace('querie', 'query')}")
        assert matrix.shape == (sizes["d_in"], h * d)
        flat = steps[3][name].tensor
        bias = 0.0 if linear.bias is None else linear.bias
        assert_close(flat, steps[0]["input"].tensor @ matrix.tensor + bias, atol=1e-5, rtol=1e-5)
        unrolled, grouped = steps[4][name].tensor, steps[5][name].tensor
        assert unrolled.shape == (b, t, h, d)
        assert grouped.shape == (b, h, t, d)
        for head in range(h):
            piece = flat[:, :, head * d : (head + 1) * d]
            assert torch.equal(unrolled[:, :, head], piece)
            assert torch.equal(grouped[:, head], piece)
    assert torch.equal(steps[6]["scores"].tensor, record.scores)
    assert [one.name for one in steps[7].tensors] == ["masked"] * sizes["causal"] + [
        "scaled",
        "weights",
    ]
    if sizes["causal"]:
        masked = steps[7]["masked"].tensor
        assert torch.equal(masked, record.masked_scores)
        assert bool(masked[..., torch.ones(t, t).triu(1).bool()].isinf().all())
    assert torch.equal(steps[7]["scaled"].tensor, record.scaled_scores)
    assert torch.equal(steps[7]["weights"].tensor, record.attention)
    assert torch.equal(steps[8]["context"].tensor, record.context)
    by_token, merged = steps[9]["context"].tensor, steps[10]["merged"].tensor
    assert by_token.shape == (b, t, h, d)
    for head in range(h):
        assert torch.equal(by_token[:, :, head], record.context[:, head])
        assert torch.equal(merged[:, :, head * d : (head + 1) * d], record.context[:, head])
    assert_close(
        steps[10]["output"].tensor,
        merged @ attention.out_proj.weight.T + attention.out_proj.bias,
        atol=1e-5,
        rtol=1e-5,
    )
    check_sources(steps)
    check_cells(steps)


def check_sources(steps: tuple[ShapeStep, ...]) -> None:
    for step in steps:
        for number, name in step.sources:
            assert number < step.number
            assert steps[number - 1][name].name == name
        for one in step.tensors:
            assert len(one.axes) == one.tensor.dim()


def check_cells(steps: tuple[ShapeStep, ...]) -> None:
    """Check that steps that only move a number keep its index in the flat tensor."""
    width = steps[0].width
    batch, tokens, _ = steps[0]["input"].shape
    first = {name: int(steps[3][name].cells.min()) for name in THREE}  # type: ignore[union-attr]
    change = [(step[name], steps[3][name], first[name]) for step in steps[3:6] for name in THREE]
    merged = steps[10]["merged"]
    change += [(steps[i].tensors[0], merged, first["queries"]) for i in (8, 9, 10)]
    for one, flat, start in change:
        assert one.cells is not None
        assert one.groups is not None
        assert one.cells.shape == one.groups.shape == one.tensor.shape
        row, column = one.cells // width, one.cells % width - start
        batch_index, token = row // tokens, row % tokens
        assert torch.equal(flat.tensor[batch_index, token, column], one.tensor)
        # The group is the first number of the same token and head.
        head_dim = steps[8]["context"].shape[-1]
        assert torch.equal(one.groups, row * width + start + column // head_dim * head_dim)
    for one in (steps[6]["scores"], *steps[7].tensors):
        assert one.cells is None
        assert one.groups is not None
        expected = steps[8]["context"].groups
        assert expected is not None
        assert torch.equal(one.groups, expected[..., :1].expand(one.shape))
    for one in (steps[0]["input"], steps[10]["output"]):
        assert one.groups is not None
        assert one.groups[..., 0].flatten().tolist() == [
            row * width + width - 1 for row in range(batch * tokens)
        ]


def test_lecture_shapes():
    with seeded(1):
        attention = MultiHeadAttention(6, 6, 6, 0.0, 2).eval()
    x = random_embeddings([LECTURE["sentence"].split()], 6, 123)
    steps = multi_head_steps(attention, x)
    for step, (title, shape) in zip(steps, LECTURE["shape_steps"], strict=True):
        assert title.startswith(f"{step.number} ")
        last = step.shape_text
        assert last == shape


@pytest.mark.parametrize("name", list(TINY))
def test_layer_steps_match_its_record(name: str):
    model = build(name)
    config = model.config
    ids = torch.randint(config.vocab_size, (2, 7), generator=torch.Generator().manual_seed(3))
    output = model(ids, record=True)
    for layer, record in enumerate(output.records):
        steps = layer_steps(model, output.layers[layer], layer)
        assert torch.equal(steps[0]["input"].tensor, output.layers[layer].attention_reads)
        grouped = steps[5]
        rotary = config.positions == "rotary"
        queries, keys = ("queries, rotated", "keys, rotated") if rotary else ("queries", "keys")
        assert torch.equal(grouped[queries].tensor, record.q)
        assert torch.equal(grouped[keys].tensor, record.k)
        assert torch.equal(grouped["values"].tensor, record.v)
        assert torch.equal(steps[6]["scores"].tensor, record.scores)
        assert torch.equal(steps[7]["weights"].tensor, record.weights)
        assert torch.equal(steps[8]["context"].tensor, record.context)
        assert record.output is not None
        assert torch.equal(steps[10]["output"].tensor, record.output)
        assert torch.equal(steps[2]["W_out"].tensor, model.out_weight(layer))
        for tensor, matrix in zip(THREE, steps[2].tensors[:3], strict=True):
            heads = config.n_heads if tensor == "queries" else config.kv_heads
            assert matrix.shape == (config.d_model, heads * config.d_head)
            assert steps[3][tensor].shape == (2, 7, heads * config.d_head)
        check_sources(steps)
        check_cells(steps)


def test_torch_error_message_for_view():
    context = torch.randn(2, 3, 5, 4)
    message = view_without_contiguous_error(context)
    with pytest.raises(RuntimeError) as error:
        context.transpose(1, 2).view(2, 5, 12)
    assert message == str(error.value)
    assert "view" in message
    assert view_without_contiguous_error(torch.randn(2, 1, 5, 4)) == ""
    assert view_without_contiguous_error(torch.randn(2, 3, 1, 4)) == ""
    assert view_without_contiguous_error(torch.randn(2, 3, 5, 1)) == ""


def test_word_vector_does_not_depend_on_position():
    x = random_embeddings([["a", "b", "a"], ["b", "c", "a"]], 5, 7)
    assert x.shape == (2, 3, 5)
    assert torch.equal(x[0, 0], x[0, 2])
    assert torch.equal(x[0, 0], x[1, 2])
    assert torch.equal(x[0, 1], x[1, 0])
    assert not torch.equal(x[0, 0], x[0, 1])
    assert torch.equal(x, random_embeddings([["a", "b", "a"], ["b", "c", "a"]], 5, 7))
