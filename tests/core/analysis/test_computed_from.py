"""What a number was computed from: indices by hand, and windows of any tensor."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.computed_from import (
    Computation,
    Follows,
    Reads,
    mixed,
    projected,
    scored,
    terms,
    weighed,
)
from tests.helpers.arithmetic import result


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def test_an_index_follows_that_of_the_result():
    assert Follows(1).indices((7, 3, 5)) == (3,)
    assert Follows(0, group=3).indices((7, 3, 5)) == (2,)
    assert Follows(2, half=4).indices((7, 3, 5)) == (5, 1)
    assert Follows(2, half=4).indices((7, 3, 2)) == (2, 6)
    # column 5 of head 7, the heads having 11 columns each
    assert Follows(2, head=(0, 11)).indices((7, 3, 5)) == (82,)


def test_cells_along_every_axis():
    reads = Reads("keys", (Follows(0, group=2), Follows(2), None))
    assert reads.cells((3, 1, 4), (2, 5, 3)) == ((1,), (4,), (0, 1, 2))


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_attention_on_any_number_of_leading_axes(lead: tuple[int, ...]):
    n, group = len(lead), 1
    q, k, v = drawn(*lead, 4, 6), drawn(*lead, 5, 6), drawn(*lead, 5, 6)
    scores = q @ k.transpose(-1, -2)
    weights = (0.5 * scores).softmax(dim=-1)
    sources = {"q": q, "k": k, "v": v, "scores": scores, "weights": weights}
    for how, shown in (
        (scored("q", "k", n, group), scores),
        (weighed("scores", n, 0.5), weights),
        (mixed("weights", "v", n, group), weights @ v),
    ):
        found = terms(how, sources, [range(size) for size in shown.shape], most=100)
        assert_close(result(how.kind, found.operands, found.added, shown), shown)


def test_two_axes_are_summed_over_in_their_order():
    """An output is made of all columns of all heads, which lie side by side in the matrix."""
    context, matrix, bias = drawn(2, 4, 3), drawn(5, 6), drawn(5)
    output = context.transpose(0, 1).flatten(1) @ matrix.T + bias
    reads = Reads("context", (None, Follows(0), None)), Reads("matrix", (Follows(1), None))
    found = terms(
        Computation("product", reads, bias),
        {"context": context, "matrix": matrix},
        [range(4), range(5)],
        most=100,
    )
    assert found.n_terms == 6
    assert_close(result("product", found.operands, found.added, output), output)


def test_fewer_terms_are_the_first():
    x, matrix = drawn(4, 7), drawn(7, 5)
    how = projected("x", "matrix", 0)
    found = terms(how, {"x": x, "matrix": matrix}, [[2], [1, 4]], most=3)
    assert found.n_terms == 7
    assert torch.equal(found.operands[0, 1], torch.stack((x[2, :3], matrix[:3, 4]), dim=-1))
