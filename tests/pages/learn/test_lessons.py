"""What every page of the learning path keeps: short texts, three questions, links that restore."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import (
    HOME,
    MAX_WORDS,
    VIEWS,
    open_page,
    open_whole_page,
    questions,
    words,
)
from ui.widgets.questions import Question
from ui.widgets.quiz import QUESTIONS

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
    assert len(keys) == QUESTIONS
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


def test_answers_stay_for_the_visit_and_are_counted(site: AppTest):
    masking, scaling = (f"pages/learn/{name}/page.py" for name in ("masking", "scaling"))

    def says(text: str) -> bool:
        return any(text in element.value for element in site.markdown)

    def answer(key: str, choice: str) -> None:
        site.radio(key).set_value(choice).run()
        site.button(f"{key}_reveal").click().run()

    open_page(site, masking)
    for choice in site.radio("masking_quiz_2").options:
        answer("masking_quiz_2", choice)
        if site.success:
            break
    right, because = choice, site.success[0].value
    assert says(f"Answered right: 1 of {QUESTIONS}.")
    open_page(site, scaling)
    for wrong in site.radio("scaling_quiz_1").options:
        answer("scaling_quiz_1", wrong)
        if not site.success:
            break
    assert says(f"Answered right: 0 of {QUESTIONS}.")
    open_page(site, HOME)
    open_page(site, masking)
    assert site.radio("masking_quiz_2").value == right
    assert site.radio("masking_quiz_1").value is None
    assert site.success[0].value == because
    assert says(f"Answered right: 1 of {QUESTIONS}.")
    # choosing anew hides the answer until it is asked for again
    site.radio("masking_quiz_2").set_value(None).run()
    assert not site.success


@pytest.mark.parametrize("view", LESSONS)
def test_the_questions_are_made_when_the_quiz_is_opened(
    site: AppTest, view: str, bundled_weights: None
):
    open_page(site, view, folded=True)
    assert not site.exception
    assert questions(site) == []
    site.session_state[f"{Path(view).parent.name}_predict"] = True
    site.run()
    assert len(questions(site)) == QUESTIONS


def test_the_questions_of_block_say_which_section_answers_them(site: AppTest):
    open_page(site, "pages/learn/block/page.py")
    sections = site.selectbox("block_section").options
    for radio in questions(site):
        assert any(
            f"Choose the section *{section}* to look." in radio.label for section in sections
        )


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
