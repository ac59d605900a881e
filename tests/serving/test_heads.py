"""How heads are written."""

from dataclasses import replace

import pytest

from serving import models
from serving.heads import HeadChoice, HeadId, all_heads
from tests.helpers.bundled_models import DECODER, FIRST_GPT2


def test_a_head_is_written_and_read_in_one_way():
    assert str(HeadId(3, 11)) == "L3H11"
    assert HeadId.parse("L3H11") == HeadId(3, 11)
    assert all_heads(2, 3) == ["L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"]
    assert sorted([HeadId(10, 0), HeadId(2, 5), HeadId(2, 1)]) == [
        HeadId(2, 1),
        HeadId(2, 5),
        HeadId(10, 0),
    ]


def test_a_short_title_leaves_out_what_stands_in_brackets():
    entries = {entry.spec.name: entry for entry in models.ready()}
    own = entries[FIRST_GPT2]
    in_brackets = HeadChoice(replace(own, spec=replace(own.spec, title="GPT-2 (124M)")), 3, 1)
    assert in_brackets.title == "GPT-2 (124M), L3H1"
    assert in_brackets.short_title == "GPT-2, L3H1"
    without = HeadChoice(entries[DECODER], 7, 2)
    assert without.short_title == without.title == "SmolLM2 135M, L7H2"


@pytest.mark.parametrize(
    "text", ["", "L1", "l1h2", "3.1", "L1H2 ", "L-1H2", "L1H٣", "L1H" + "9" * 50]
)
def test_other_texts_are_no_head(text: str):
    with pytest.raises(ValueError, match="is no head; write one as L3H1"):
        HeadId.parse(text)
