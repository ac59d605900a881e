"""The eleven steps: the terms of a number make it, and the cells are those of the rule."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.computed_from import Terms, terms
from attention_core.ladder import MultiHeadAttention
from attention_core.seeding import seeded
from pages.learn.shapes.experiment.computed_from import computation, sources
from pages.learn.shapes.experiment.named import ShapeStep
from pages.learn.shapes.experiment.steps import layer_steps, multi_head_steps
from tests.helpers.arithmetic import result
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


def some_terms(
    steps: tuple[ShapeStep, ...], number: int, name: str, picked: list, most: int
) -> Terms:
    how = computation(steps, number, name)
    assert how is not None
    return terms(how, sources(steps), picked, most)


@pytest.mark.parametrize("name", ALL)
def test_the_terms_make_the_number(name: str):
    steps = ALL[name]()
    for number, tensor in computed(steps):
        shown = steps[number - 1][tensor].tensor
        how = computation(steps, number, tensor)
        found = some_terms(steps, number, tensor, whole(shown.shape), most=1000)
        assert how is not None
        assert found.operands.shape[:-2] == shown.shape
        assert found.operands.shape[-2] == found.n_terms + (how.kind == "softmax")
        made = result(how.kind, found.operands, found.added, shown)
        assert_close(shown, made, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_a_window_has_the_same_terms(name: str):
    steps = ALL[name]()
    for number, tensor in computed(steps):
        shape = steps[number - 1][tensor].shape
        picked = [list(range(size))[1::2] or [0] for size in shape]
        some = some_terms(steps, number, tensor, picked, most=2)
        full = some_terms(steps, number, tensor, whole(shape), most=1000)
        n = some.operands.shape[-2]
        grid = torch.meshgrid(*map(torch.tensor, picked), indexing="ij")
        assert torch.equal(some.operands, full.operands[grid][..., :n, :])
        assert some.n_terms == full.n_terms


def test_the_cells_by_hand():
    """Query 1 and key 2 of head 2 of the second sentence; three query heads share a key head."""
    scores = computation(steps_of_layer("llama"), 7, "scores")
    assert scores is not None
    query, key = scores.reads
    assert (query.source, key.source) == ("6 queries, turned", "6 keys, turned")
    assert query.cells((1, 2, 1, 2), (2, 6, 5, 8)) == ((1,), (2,), (1,), tuple(range(8)))
    assert key.cells((1, 2, 1, 2), (2, 2, 5, 8)) == ((1,), (0,), (2,), tuple(range(8)))
    turned = computation(steps_of_layer("llama"), 6, "keys, turned")
    assert turned is not None
    assert turned.reads[0].source == "6 keys"
    assert turned.reads[0].cells((0, 1, 4, 1), (2, 2, 5, 8))[-1] == (1, 5)
    assert turned.reads[0].cells((0, 1, 4, 5), (2, 2, 5, 8))[-1] == (5, 1)
