"""How the head that a page shows is called."""

from dataclasses import replace

from serving import models
from tests.helpers.bundled_models import DECODER, FIRST_GPT2
from ui.widgets.head_choice import HeadChoice


def test_a_short_title_leaves_out_what_stands_in_brackets():
    entries = {entry.spec.name: entry for entry in models.ready()}
    own = entries[FIRST_GPT2]
    in_brackets = HeadChoice(replace(own, spec=replace(own.spec, title="GPT-2 (124M)")), 3, 1)
    assert in_brackets.title == "GPT-2 (124M), L3H1"
    assert in_brackets.short_title == "GPT-2, L3H1"
    without = HeadChoice(entries[DECODER], 7, 2)
    assert without.short_title == without.title == "SmolLM2 135M, L7H2"
