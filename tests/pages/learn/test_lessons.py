"""What every page of the learning path keeps: short texts, three questions, links that restore."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import MAX_WORDS, VIEWS, open_page, open_whole_page, questions, words
from ui.widgets.quiz import Question

LESSONS = [view for view in VIEWS if view.startswith("pages/learn/")]


@pytest.mark.parametrize("view", LESSONS)
def test_a_lesson_is_short(site: AppTest, view: str):
    open_whole_page(site, view)
    assert not site.exception
    assert words(site) < MAX_WORDS


@pytest.mark.parametrize("view", LESSONS)
@pytest.mark.usefixtures("bundled_weights")  # the questions of Tokens are about its tokenizers
def test_three_questions_are_answered_only_on_demand(site: AppTest, view: str):
    open_page(site, view)
    keys = [radio.key for radio in questions(site)]
    assert len(keys) == 3
    for key in keys:
        before = len(site.success) + len(site.info)
        choices = site.radio(key).options
        assert len(choices) >= 2
        outcomes = set()
        for choice in choices:
            site.radio(key).set_value(choice).run()
            # chosen, not yet asked about: the answer stays hidden
            assert len(site.success) + len(site.info) == before
            site.button(f"{key}_reveal").click().run()
            assert not site.exception
            (shown,) = [
                e for e in [*site.success, *site.info] if "Yes. " in e.value or "No: " in e.value
            ]
            outcomes.add(shown.value.split(" ")[0])
        assert outcomes == {"Yes.", "No:"}
        site.radio(key).set_value(None).run()


@pytest.mark.parametrize("view", LESSONS)
def test_a_lesson_without_weights_still_opens(site: AppTest, view: str, no_weights: None):
    open_page(site, view)
    assert not site.exception
    assert site.title[0].value


def test_a_question_needs_distinct_choices():
    with pytest.raises(ValueError, match="not distinct"):
        Question("Which?", "a", ("b", "b"), "because")
    with pytest.raises(ValueError, match="not distinct"):
        Question("Which?", "a", (), "because")
    question = Question("Which?", "a", ("b", "c"), "because")
    assert sorted(question.choices) == ["a", "b", "c"]
    assert question.choices == Question("Which?", "a", ("c", "b"), "because").choices
