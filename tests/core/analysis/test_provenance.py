"""The terms that tensor elements are computed from, for any part of the tensor."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.provenance import Computation, Operands, terms
from tests.helpers.arithmetic import result


def random_tensor(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def all_terms(computation: Computation, shape: torch.Size, **sources: torch.Tensor) -> Operands:
    return terms(computation, sources, [range(size) for size in shape], max_terms=100)


def check_terms(expected: torch.Tensor, computation: Computation, **sources: torch.Tensor) -> None:
    match = all_terms(computation, expected.shape, **sources)
    assert_close(result(computation.kind, match.operands, match.added, expected), expected)


@pytest.mark.parametrize("lead", ["", "h", "bh"])
def test_attention_with_any_number_of_leading_axes(lead: str):
    sizes = [2, 3][2 - len(lead) :]
    q, k, v = random_tensor(*sizes, 4, 6), random_tensor(*sizes, 5, 6), random_tensor(*sizes, 5, 6)
    scores = q @ k.transpose(-1, -2)
    weights = (0.5 * scores).softmax(dim=-1)
    scored = Computation("product", f"{lead}qd,{lead}kd->{lead}qk", ("q", "k"))
    check_terms(scores, scored, q=q, k=k)
    softmax = Computation("softmax", f"{lead}qk,{lead}ql->{lead}qk", ("s", "s"), factor=0.5)
    check_terms(weights, softmax, s=scores)
    mixed = Computation("product", f"{lead}qk,{lead}kd->{lead}qd", ("w", "v"))
    check_terms(weights @ v, mixed, w=weights, v=v)


def test_query_heads_share_a_key_head():
    q, k = random_tensor(6, 4, 5), random_tensor(2, 3, 5)
    scores = q @ k.repeat_interleave(3, dim=0).transpose(-1, -2)
    computation = Computation("product", "(hg)qd,hkd->(hg)qk", ("q", "k"))
    assert all_terms(computation, scores.shape, q=q, k=k).sizes == {
        "h": 2,
        "g": 3,
        "q": 4,
        "k": 3,
        "d": 5,
    }
    check_terms(scores, computation, q=q, k=k)


def test_heads_are_stacked_in_a_matrix():
    x, matrix = random_tensor(4, 5), random_tensor(6, 5)
    queries = (x @ matrix.T).view(4, 2, 3).transpose(0, 1)
    computation = Computation("product", "tc,(hd)c->htd", ("x", "matrix"), sizes={"h": 2})
    check_terms(queries, computation, x=x, matrix=matrix)


def test_sums_over_two_axes_keep_their_order():
    """Each output uses all columns of all heads, concatenated in the matrix."""
    context, matrix, bias = random_tensor(2, 4, 3), random_tensor(5, 6), random_tensor(5)
    output = context.transpose(0, 1).flatten(1) @ matrix.T + bias
    computation = Computation("product", "htd,c(hd)->tc", ("context", "matrix"), bias=bias)
    assert all_terms(computation, output.shape, context=context, matrix=matrix).n_terms == 6
    check_terms(output, computation, context=context, matrix=matrix)


def test_limited_terms_are_the_first_ones():
    x, matrix = random_tensor(4, 7), random_tensor(7, 5)
    computation = Computation("product", "tc,cd->td", ("x", "matrix"))
    match = terms(computation, {"x": x, "matrix": matrix}, [[2], [1, 4]], max_terms=3)
    assert match.n_terms == 7
    assert torch.equal(match.operands[0, 1], torch.stack((x[2, :3], matrix[:3, 4]), dim=-1))
