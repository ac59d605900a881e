"""Dot products, cosines and neighbours of word vectors, against torch's own and single numbers."""

import math

import pytest
import torch
from torch.testing import assert_close

from attention_core.lecture_inputs import JOURNEY
from pages.learn.similarity.experiment.word_vectors import (
    cosines_between,
    largest,
    mean_cosine,
    nearest_other,
    products,
    token_table,
)
from tests.helpers.lectures import LECTURE_NUMBERS
from tests.helpers.tiny_models import TINY, build


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_dot_products_of_the_notebook():
    expected = torch.tensor(LECTURE_NUMBERS["002_simplified_self_attention"]["scores"])
    for row, x in zip(expected, JOURNEY.embeddings, strict=True):
        assert_close(products(x, JOURNEY.embeddings).dots, row, atol=5e-5, rtol=0)


def test_length_times_length_times_cosine():
    x, rows = random(7), random(5, 7, seed=1)
    compared = products(x, rows)
    assert_close(compared.dots, torch.stack([torch.dot(row, x) for row in rows]))
    assert_close(compared.cosines, torch.cosine_similarity(rows, x[None], dim=-1))
    assert compared.length == pytest.approx(math.sqrt(sum(float(number) ** 2 for number in x)))
    assert_close(compared.dots, compared.length * compared.lengths * compared.cosines)
    known = products(x, rows, rows.norm(dim=-1))
    assert_close(known.cosines, compared.cosines, atol=0, rtol=0)


def test_along_and_across_are_the_sides_of_a_right_angle():
    x, rows = random(6, seed=2), random(9, 6, seed=3)
    compared = products(x, rows)
    direction = x / x.norm()
    assert_close(compared.along, rows @ direction)
    rest = rows - (rows @ direction)[:, None] * direction
    assert_close(compared.across, rest.norm(dim=-1))


def test_angles_that_are_known():
    rows = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]])
    compared = products(torch.tensor([0.5, 0.0]), rows)
    assert_close(compared.degrees, torch.tensor([0.0, 45.0, 90.0, 180.0, 90.0]))
    assert_close(compared.cosines[4], torch.tensor(0.0))


def test_a_longer_vector_has_larger_dot_products_and_the_same_cosines():
    x, rows = random(4), random(3, 4, seed=1)
    once, thrice = products(x, rows), products(3.0 * x, rows)
    assert_close(thrice.dots, 3.0 * once.dots)
    assert_close(thrice.cosines, once.cosines)


@pytest.mark.parametrize(("x", "rows"), [((3,), (2, 4)), ((2, 3), (2, 3)), ((3,), (3,))])
def test_vectors_that_do_not_fit(x: tuple[int, ...], rows: tuple[int, ...]):
    with pytest.raises(ValueError, match=r"x must be \(C\)"):
        products(torch.zeros(x), torch.zeros(rows))


@pytest.mark.parametrize("without", [0, 4, 6])
def test_the_largest_without_one(without: int):
    values = random(7, seed=5)
    ranked = sorted(set(range(7)) - {without}, key=lambda place: -float(values[place]))
    assert largest(values, 3, without=without).tolist() == ranked[:3]
    assert largest(values, 6, without=without).tolist() == ranked


@pytest.mark.parametrize("n", [0, 7])
def test_more_than_there_are(n: int):
    with pytest.raises(ValueError, match=f"7 values have no {n} largest"):
        largest(torch.zeros(7), n, without=0)


def test_the_nearest_other_vector():
    vectors = random(6, 5, seed=7)
    cosines = [[float(torch.cosine_similarity(a, b, dim=0)) for b in vectors] for a in vectors]
    assert_close(cosines_between(vectors), torch.tensor(cosines))
    expected = [
        max((place for place in range(6) if place != own), key=lambda place: row[place])
        for own, row in enumerate(cosines)
    ]
    assert nearest_other(vectors).tolist() == expected
    with pytest.raises(ValueError, match="1 vectors"):
        nearest_other(vectors[:1])


def test_the_mean_cosine():
    first, second = random(4, 3), random(4, 3, seed=1)
    expected = sum(
        float(torch.cosine_similarity(a, b, dim=0)) for a, b in zip(first, second, strict=True)
    )
    assert mean_cosine(first, second) == pytest.approx(expected / 4, abs=1e-6)


@pytest.mark.parametrize("name", TINY)
def test_the_table_holds_the_vector_of_every_token_and_is_no_copy(name: str):
    model = build(name)
    table = token_table(model)
    everything = torch.arange(model.config.vocab_size)
    assert_close(table, model.token_vectors(everything), atol=0, rtol=0)
    assert table.data_ptr() in {parameter.data_ptr() for parameter in model.parameters()}
