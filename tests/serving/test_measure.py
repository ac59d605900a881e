"""Test that measurements run one at a time and are cached."""

from collections.abc import Iterator

import pytest

from serving import measure


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    measure.clear()
    yield
    measure.clear()


def test_each_round_is_measured_once():
    results: list[int] = []

    def make() -> int:
        results.append(1)
        return len(results)

    first = measure.cached_measurement(("page", 4), measure.FIRST, make)
    assert measure.cached_measurement(("page", 4), measure.FIRST, make) is first
    rounds = {measure.new_round(), measure.new_round()}
    assert len(rounds) == 2
    assert measure.FIRST not in rounds
    assert {measure.cached_measurement(("page", 4), round_, make).value for round_ in rounds} == {
        2,
        3,
    }
    assert measure.cached_measurement(("page", 5), measure.FIRST, make).value == 4
