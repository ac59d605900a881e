"""What a number was computed from: the terms make the number, the cells are those of the rule."""

import math

import pytest
import torch
from torch.testing import assert_close

from attention_core import MultiHeadAttention
from attention_core.experiments.learn.computed_from import Follows, Reads, computation, terms
from attention_core.experiments.learn.shapes import ShapeStep, layer_steps, multi_head_steps
from attention_core.experiments.seeding import seeded
from tests.helpers.tiny_models import TINY, build

COMPUTED = [
    (4, "queries"), (4, "keys"), (4, "values"), (7, "scores"), (8, "masked"), (8, "scaled"),
    (8, "weights"), (9, "context"), (11, "output"),
]  # fmt: skip


def steps_of_example(*, dropout: float = 0.0, bias: bool = True) -> tuple[ShapeStep, ...]:
    with torch.no_grad(), seeded(3):
        attention = MultiHeadAttention(5, 8, 3, dropout, 2, bias)
        return multi_head_steps(attention.train(dropout > 0), torch.randn(2, 3, 5))


def steps_of_layer(name: str) -> tuple[ShapeStep, ...]:
    model = build(name)
    ids = torch.randint(model.config.vocab_size, (2, 5), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        output = model(ids, record=True)
        return layer_steps(model, output.layers[1], 1)


ALL = {
    "example": lambda: steps_of_example(),
    "no bias": lambda: steps_of_example(bias=False),
    "dropout": lambda: steps_of_example(dropout=0.4),
    **{name: (lambda name=name: steps_of_layer(name)) for name in TINY},
}


def whole(shape: tuple[int, ...]) -> list[range]:
    return [range(size) for size in shape]


def computed(steps: tuple[ShapeStep, ...]) -> list[tuple[int, str]]:
    return [
        (step.number, tensor.name)
        for step in steps
        for tensor in step.tensors
        if computation(steps, step.number, tensor.name) is not None
    ]


def test_what_is_computed_and_what_is_moved():
    assert computed(steps_of_example()) == COMPUTED


@pytest.mark.parametrize("name", ALL)
def test_the_terms_make_the_number(name: str):
    steps = ALL[name]()
    for number, tensor in computed(steps):
        how = computation(steps, number, tensor)
        result = steps[number - 1][tensor].tensor
        found = terms(steps, number, tensor, whole(result.shape), most=1000)
        assert how is not None
        assert found is not None
        a, b = found.operands.unbind(dim=-1)
        assert found.operands.shape[:-2] == result.shape
        if how.kind == "softmax":
            assert a.shape[-1] == found.n_terms + 1
            made = a[..., 0].exp() / a[..., 1:].exp().sum(dim=-1)
        else:
            assert a.shape[-1] == found.n_terms
            made = (a * b).sum(dim=-1)
        if found.added is not None:
            made = made + found.added
        if how.kind in ("masked", "dropout"):  # or put out
            out = -math.inf if how.kind == "masked" else 0.0
            made = torch.where(result == out, out, made)
        assert_close(result, made, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_a_window_has_the_same_terms(name: str):
    steps = ALL[name]()
    for number, tensor in computed(steps):
        shape = steps[number - 1][tensor].shape
        picked = [list(range(size))[1::2] or [0] for size in shape]
        some = terms(steps, number, tensor, picked, most=2)
        full = terms(steps, number, tensor, whole(shape), most=1000)
        assert some is not None
        assert full is not None
        n = some.operands.shape[-2]
        grid = torch.meshgrid(*map(torch.tensor, picked), indexing="ij")
        assert torch.equal(some.operands, full.operands[grid][..., :n, :])
        assert some.n_terms == full.n_terms


def test_the_cells_by_hand():
    """Query 1 and key 2 of head 2 of the second sentence; three query heads share a key head."""
    scores = computation(steps_of_layer("llama"), 7, "scores")
    assert scores is not None
    query, key = scores.reads
    assert query.cells((1, 2, 1, 2), (2, 6, 5, 8)) == ((1,), (2,), (1,), tuple(range(8)))
    assert key.cells((1, 2, 1, 2), (2, 2, 5, 8)) == ((1,), (0,), (2,), tuple(range(8)))
    turned = Reads(6, "queries", (Follows(0), Follows(1), Follows(2), Follows(3, half=3)))
    assert turned.cells((0, 1, 4, 1), (2, 4, 5, 6))[-1] == (1, 4)
    assert turned.cells((0, 1, 4, 5), (2, 4, 5, 6))[-1] == (5, 2)


def test_too_few_terms_are_refused():
    with pytest.raises(ValueError, match="at least one term is needed, got 0"):
        terms(steps_of_example(), 4, "queries", whole((2, 3, 8)), most=0)
