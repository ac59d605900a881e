"""Test head names."""

import pytest

from serving.heads import HeadId, all_heads


def test_head_names_survive_a_round_trip():
    assert str(HeadId(3, 11)) == "L3H11"
    assert HeadId.parse("L3H11") == HeadId(3, 11)
    assert all_heads(2, 3) == ["L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"]
    assert sorted([HeadId(10, 0), HeadId(2, 5), HeadId(2, 1)]) == [
        HeadId(2, 1),
        HeadId(2, 5),
        HeadId(10, 0),
    ]


@pytest.mark.parametrize("text", ["", "L1", "l1h2", "L1H2 ", "L-1H2", "L1H٣", "L1H" + "9" * 50])
def test_rejects_invalid_head_names(text: str):
    with pytest.raises(ValueError, match="L3H1"):
        HeadId.parse(text)
