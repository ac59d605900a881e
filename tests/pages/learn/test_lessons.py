"""Behavior of all lessons: quizzes, links that restore the page, user text."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from pages.learn.attention_without_the_matrix import tile_walk
from pages.learn.block import sections
from pages.learn.cheaper_models import rewards
from pages.learn.position import permutation
from pages.learn.scaling import real_head
from pages.learn.tokens import tokenizers
from pages.learn.why_attention import influence
from tests.helpers.apptest import (
    HOME,
    VIEWS,
    messages,
    open_page,
    open_whole_page,
    questions,
)
from tests.helpers.bundled_models import DECODER, ENCODER
from ui.widgets.quiz import QUESTIONS

LESSONS = [view for view in VIEWS if view.startswith("pages/learn/")]
HOSTILE = "naïve 日本語 \u202e <b>**a**</b> ![i](http://e.invalid) $x$ :red[y] <|im_end|>"
# Views of a page, with the choices that make a model read the text.
TEXTS: dict[str, dict[str, str]] = {
    "attention_without_the_matrix": {},
    "block": {"section": sections.ORDER, "layer_of": DECODER},
    "cheaper_models": {},
    "ladder": {"input": "my sentence"},
    "masking": {"input": "my sentence"},
    "position": {},
    "scaling": {},
    "shapes": {},
    "similarity": {},
    "tokens": {},
    "two_networks": {},
    "who_sets_the_weights": {},
    "why_attention": {},
    "why_several_heads": {},
}
WITHOUT_A_MODEL = {"against_pytorch", "two_networks", "watch_heads_form", "why_attention"}
# These lessons open on an example and run a sentence only on request.
EXAMPLE_FIRST = {"ladder", "masking", "shapes", "block"}
LINKS = {
    "attention_without_the_matrix": f"model={ENCODER}&layer=4&head=7&queries=2&keys=8&step=3"
    f"&order={tile_walk.BY_COLUMNS}&tokens=512&many_queries=16&many_keys=256&numbers=16-bit numbers"
    "&query=2",
    "cheaper_models": f"part={rewards.NAME}&continuations=3&seed=5",
    "ladder": "rung=splits&input=my matrix&matrix=1 2; 3 4; 5 6&d_out=8&heads=4&head=2&i=2&j=0"
    "&causal=false&seed=7&times=500",
    "masking": "input=six tokens&tokens=3&fill=-5&what=the masked weights&p=0.3&seed=77",
    "position": f"text=man bites "
    f"dog&model={DECODER}&order={permutation.SHUFFLED}&given={permutation.WITH}"
    "&width=128&row=31&apart=20&count=128&layer=7&head=6&query=2&key=0&place=2000&distance=64"
    "&factor=16&scaling=Llama 3",
    "scaling": "logits=1 2&temperature=0.25&d_k=1024&seed=99&layer=5"
    f"&how={real_head.FACTOR}&factor=1/16",
    "shapes": "step=10&text=a b c d&d_in=3&d_out=10&heads=5&causal=false&seed=5&dropout=0.2&draw=3",
    "similarity": f"text=Two cats sat on the warm mat&model={ENCODER}&word=3&layer=5&head=11"
    "&other=Two dogs sat on the warm mat&dim=dim=-2",
    "tokens": f"text=Ein Satz&method={tokenizers.WORDPIECE}&word=1&step=1&model={DECODER}&place=0",
    "why_attention": "text=a kite and a boat&width=32&state=64&hold=3.5&seed=17"
    f"&layer={influence.PLAIN}",
    "why_several_heads": f"model={DECODER}&layer=11&head=6&other=1&token=3&count=48",
}


def view_of(name: str) -> str:
    return f"pages/learn/{name}/page.py"


@pytest.mark.parametrize("name", LINKS)
def test_link_restores_the_view(site: AppTest, name: str):
    values = {f"{name}_{key}": value for key, value in parse_qsl(LINKS[name])}
    open_whole_page(site, view_of(name), **values)
    assert not site.exception
    assert not site.toast
    for key, value in values.items():
        assert str(site.session_state[key]).lower() in (value.lower(), f"{value}.0"), key


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_empty_and_long_text(site: AppTest, name: str):
    key = f"{name}_text"
    settings = {f"{name}_{setting}": value for setting, value in TEXTS[name].items()}
    open_whole_page(site, view_of(name), **settings, **{key: HOSTILE})
    for text in (HOSTILE, "", "word " * 500):
        (box,) = [b for b in [*site.text_input, *site.text_area] if b.key == key]
        typed = text[: box.proto.max_chars or None]
        box.set_value(typed).run()
        assert not site.exception
        assert site.session_state[key] == typed
        for element in [*site.markdown, *site.warning]:
            assert not re.search(r"(?<!\\)<b>|(?<!\\)!\[i", element.value)
        assert messages(site) or site.get("bidi_component") or site.get("arrow_vega_lite_chart")


@pytest.mark.parametrize("view", LESSONS)
@pytest.mark.usefixtures("no_weights")
def test_lesson_without_weights_explains_how_to_get_them(site: AppTest, view: str):
    open_whole_page(site, view)
    assert not site.exception
    name = Path(view).parent.name
    needs_some = name not in WITHOUT_A_MODEL | EXAMPLE_FIRST
    assert any("make run" in message for message in messages(site)) == needs_some


@pytest.mark.parametrize("view", LESSONS)
def test_quiz_shows_questions_when_opened(site: AppTest, view: str):
    open_page(site, view, folded=True)
    assert not site.exception
    assert questions(site) == []
    site.session_state[f"{Path(view).parent.name}_predict"] = True
    site.run()
    assert not site.exception
    assert len(questions(site)) == QUESTIONS


def test_answers_are_revealed_counted_and_kept(site: AppTest):
    def is_on_page(text: str) -> bool:
        return any(text in element.value for element in site.markdown)

    def answer(key: str, *, right: bool) -> str:
        for choice in site.radio(key).options:
            site.radio(key).set_value(choice).run()
            # The answer is selected but not checked yet, so it stays hidden.
            assert not site.success
            assert not site.info
            site.button(f"{key}_reveal").click().run()
            assert len(site.success) + len(site.info) == 1
            if bool(site.success) == right:
                return str(choice)
        raise AssertionError(key)

    masking, scaling = view_of("masking"), view_of("scaling")
    open_page(site, masking)
    right = answer("masking_quiz_2", right=True)
    because = site.success[0].value
    assert is_on_page(f"Correct answers: 1 of {QUESTIONS}.")
    open_page(site, scaling)
    answer("scaling_quiz_1", right=False)
    assert is_on_page(f"Correct answers: 0 of {QUESTIONS}.")
    open_page(site, HOME)
    open_page(site, masking)
    assert site.radio("masking_quiz_2").value == right
    assert site.radio("masking_quiz_1").value is None
    assert site.success[0].value == because
    # Selecting another answer hides the solution until the next check.
    site.radio("masking_quiz_2").set_value(None).run()
    assert not site.success
