"""Every computed number of the eleven steps follows from its terms."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.provenance import terms
from attention_core.ladder import MultiHeadAttention
from attention_core.seeding import seeded
from pages.learn.shapes.experiment.named_tensors import ShapeStep
from pages.learn.shapes.experiment.provenance import computations, sources
from pages.learn.shapes.experiment.steps import layer_steps, multi_head_steps
from tests.helpers.arithmetic import result
from tests.helpers.tiny_models import TINY, build

COMPUTED = [
    "4 queries", "4 keys", "4 values", "7 scores", "8 masked", "8 scaled", "8 weights", "9 context",
    "11 output",
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


def full_window(shape: tuple[int, ...]) -> list[range]:
    return [range(size) for size in shape]


def test_computed_and_moved_tensors():
    assert list(computations(steps_of_example())) == COMPUTED


@pytest.mark.parametrize("name", ALL)
def test_terms_give_the_number(name: str):
    steps = ALL[name]()
    tensors = sources(steps)
    for tensor, how in computations(steps).items():
        actual = tensors[tensor]
        match = terms(how, tensors, full_window(actual.shape), max_terms=1000)
        assert match.operands.shape[:-2] == actual.shape
        assert match.operands.shape[-2] == match.n_terms + (how.kind == "softmax")
        terms_result = result(how.kind, match.operands, match.added, actual)
        assert_close(actual, terms_result, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_window_has_the_same_terms(name: str):
    steps = ALL[name]()
    tensors = sources(steps)
    for tensor, how in computations(steps).items():
        shape = tensors[tensor].shape
        window = [list(range(size))[1::2] or [0] for size in shape]
        some = terms(how, tensors, window, max_terms=2)
        full = terms(how, tensors, full_window(shape), max_terms=1000)
        n = some.operands.shape[-2]
        grid = torch.meshgrid(*map(torch.tensor, window), indexing="ij")
        assert torch.equal(some.operands, full.operands[grid][..., :n, :])
        assert some.n_terms == full.n_terms


def test_scores_read_the_rotated_queries_and_keys():
    """A number is rotated with the one half a head away. Its own term comes first."""
    steps = steps_of_layer("llama")
    computed, tensors = computations(steps), sources(steps)
    assert computed["7 scores"].sources == ("6 queries, rotated", "6 keys, rotated")
    rotated_keys = computed["6 keys, rotated"]
    assert rotated_keys.sources[0] == "6 keys"
    keys = tensors["6 keys"]
    own = terms(rotated_keys, tensors, full_window(keys.shape), max_terms=2).operands[..., 0]
    assert torch.equal(own, torch.stack((keys, keys.roll(4, dims=-1)), dim=-1))
