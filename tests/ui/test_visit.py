"""What a visitor chose goes along to the next page; an address wins; what does not fit waits."""

import re

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from serving.visit import HEAD, LAYER, MODEL, PAIR, Pair, Part, Visit
from tests.helpers.apptest import FRAME, open_page


def page() -> None:
    import streamlit as st

    from serving import visit
    from ui.widgets.linked import linked, take
    from ui.widgets.visit import current

    name = st.session_state["open"]
    for key in st.session_state.pop("left", []):
        del st.session_state[key]  # as Streamlit does before the first run of another page
    take()
    current().open_page(name)
    linked(st.text_area, "Text", value=f"of {name}", key=f"{name}_text", part=visit.TEXT)
    n_layers = {"first": 30, "second": 6, "third": 30}[name]
    linked(st.select_slider, "Layer", range(n_layers), 2, key=f"{name}_layer", part=visit.LAYER)
    default = {"first": 1, "second": 1, "third": 3}[name]
    linked(st.select_slider, "Head", range(9), default, key=f"{name}_head", part=visit.HEAD)


def visitor(**address: str) -> AppTest:
    site = AppTest.from_function(page, default_timeout=60)
    site.session_state["open"] = "first"
    for key, value in address.items():
        site.query_params[key] = value
    return site.run()


def go(site: AppTest, name: str, **address: str) -> AppTest:
    site.session_state["open"] = name
    site.query_params.clear()
    for key, value in address.items():
        site.query_params[key] = value
    return site.run()


def shown(site: AppTest) -> tuple[str, int]:
    assert not site.exception
    return site.text_area[0].value, site.select_slider[0].value


def test_every_page_has_its_own_defaults_until_something_is_chosen():
    site = visitor()
    assert shown(site) == ("of first", 2)
    assert shown(go(site, "second")) == ("of second", 2)


def test_what_was_chosen_goes_along_and_back():
    site = visitor()
    site.text_area[0].set_value("mine").run()
    site.select_slider[0].set_value(4).run()
    assert shown(go(site, "second")) == ("mine", 4)
    site.text_area[0].set_value("another").run()
    assert shown(site) == ("another", 4)
    assert shown(go(site, "first")) == ("another", 4)


def test_a_choice_goes_along_though_the_page_was_left_before_it_ran_again():
    site = visitor()
    site.select_slider[0].set_value(4)  # and at once, in the same run:
    go(site, "third")
    assert [slider.value for slider in site.select_slider] == [4, 1]


@pytest.mark.usefixtures("bundled_weights")
def test_a_text_goes_along_though_the_run_that_brought_it_was_interrupted_by_another_page(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    site = open_page(AppTest.from_file(FRAME, default_timeout=60), "pages/learn/tokens/page.py")
    with monkeypatch.context() as interrupted:  # at the first thing that a page sends
        interrupted.setattr(st, "set_page_config", lambda **_: st.stop())
        site.text_area(key="tokens_text").set_value("typed, and gone at once").run()
    del site.session_state["tokens_text"]  # as Streamlit does when a browser opens another page
    open_page(site, "pages/compare/heads/page.py")
    assert site.text_input(key="heads_text").value == "typed, and gone at once"


def leave(site: AppTest, name: str, **address: str) -> AppTest:
    """Open another page as a browser does: without the widgets of the page that is left.

    address: of the page that is left.
    """
    site.session_state["left"] = ["first_text", "first_layer", "first_head"]
    return go(site, name, **address)


@pytest.mark.parametrize(
    ("address", "third"),
    [
        ({"first_layer": "4", "first_text": "mine"}, ("mine", 4)),
        ({"first_layer": "4", "first_text": ""}, ("", 4)),
        ({"first_layer": "many"}, ("of third", 2)),
        ({}, ("of third", 2)),
    ],
)
def test_a_choice_that_no_run_took_goes_along_in_the_address_of_the_page_that_is_left(
    address, third
):
    assert shown(leave(visitor(), "third", **address)) == third


def test_a_widget_that_is_no_longer_on_the_page_chooses_nothing():
    site = visitor(first_layer="5")
    site.query_params.clear()  # its part was closed, and the address followed
    assert shown(leave(site, "third"))[1] == 5


def test_an_address_that_is_older_than_a_choice_of_the_page_changes_nothing():
    site = visitor(first_layer="5")
    site.session_state["first_layer"] = 7  # as a click on a picture does; the address follows
    site.run()
    assert shown(leave(site, "third", first_layer="5"))[1] == 7


@pytest.mark.usefixtures("bundled_weights")
def test_a_page_that_is_left_says_its_last_choice_in_its_address_though_the_session_holds_another(
    monkeypatch: pytest.MonkeyPatch,
):
    """Behind a run of a fragment Streamlit keeps what the widgets of a page that is left held."""
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    heads, scaling = "pages/compare/heads/page.py", "pages/learn/scaling/page.py"
    site = open_page(AppTest.from_file(FRAME, default_timeout=60), heads, heads_layer="4")
    open_page(site, heads, heads_layer="5")  # the same page: what its widget holds is newer
    assert site.select_slider(key="heads_layer").value == 4
    part = "3. A real head without its scale"
    open_page(site, scaling, heads_layer="3", scaling_part=part)
    assert site.select_slider(key="scaling_layer").value == 3


def test_whoever_chooses_a_layer_chooses_the_head_beside_it():
    site = visitor()
    assert go(site, "third").select_slider[1].value == 3
    go(site, "first").select_slider[0].set_value(4).run()
    assert go(site, "third").select_slider[1].value == 1


def test_a_page_that_was_opened_is_not_changed_again():
    site = visitor()
    site.select_slider[0].set_value(4).run()
    go(site, "second")
    site.select_slider[0].set_value(1).run()
    assert shown(site.run()) == ("of second", 1)


def test_what_a_page_cannot_take_waits_for_one_that_can():
    site = visitor()
    site.select_slider[0].set_value(17).run()
    assert shown(go(site, "second")) == ("of second", 2)
    assert shown(go(site, "third")) == ("of third", 17)


def test_an_address_wins_and_becomes_the_visitor_s_choice():
    site = visitor(first_layer="5")
    assert shown(site) == ("of first", 5)
    assert shown(go(site, "second", second_text="linked")) == ("linked", 5)
    assert shown(go(site, "third")) == ("linked", 5)


def test_whoever_chooses_a_head_chooses_the_layer_beside_it_though_the_page_is_left():
    visitor = Visit()
    for page, layer, head in (("first", 3, 1), ("first", 3, 5), ("second", 17, 5)):
        visitor.open_page(page)
        visitor.keep("layer", layer, visitor.part(LAYER).says, named=False)
        visitor.keep("head", head, visitor.part(HEAD).says, named=False)
        if page == "second":
            assert visitor.chosen == {LAYER: 3, HEAD: 5}


SPANS = ((0, 0), (0, 3), (4, 10), (11, 13), (13, 13))  # [CLS] The animal it [SEP]
WITH_SPACES = ((0, 3), (3, 10), (10, 13))


def of_pair(visitor: Visit, text: str, spans: tuple, query: int, key: int) -> list[Part]:
    return visitor.pair(text, dict(enumerate(spans)), lambda: (query, key))


def test_a_pair_is_found_by_its_characters_in_another_tokenization():
    visitor = Visit()
    visitor.open_page("first")
    query, _ = of_pair(visitor, "The animal it", SPANS, 3, 2)
    assert query.brought is None
    visitor.keep("query", 3, query.says, named=True)
    assert visitor.chosen[PAIR] == Pair("The animal it", (11, 13), (4, 10))
    brought = of_pair(visitor, "The animal it", WITH_SPACES, 0, 0)
    assert [part.brought for part in brought] == [2, 1]
    assert [part.brought for part in of_pair(visitor, "another", WITH_SPACES, 0, 0)] == [None, None]
    # a token that was added has no characters that another model's token could hold
    visitor.keep("query", 4, of_pair(visitor, "The animal it", SPANS, 4, 2)[0].says, named=True)
    assert of_pair(visitor, "The animal it", SPANS, 0, 0)[0].brought == 4
    assert of_pair(visitor, "The animal it", WITH_SPACES, 0, 0)[0].brought is None


def test_a_pair_is_chosen_by_a_value_that_its_widget_does_not_hold_yet():
    visitor = Visit()
    visitor.open_page("first")
    parts = of_pair(visitor, "The animal it", SPANS, 3, 2)
    for key, value, part in zip(("query", "key"), (3, 2), parts, strict=True):
        visitor.keep(key, value, part.says, named=False)
    visitor.take({"key": 1})
    assert visitor.chosen[PAIR] == Pair("The animal it", (11, 13), (0, 3))


def test_in_another_text_a_chosen_pair_stays_at_its_words():
    state, defaults = {"query": 3, "key": 2}, {"query": 1, "key": 2}
    visitor = Visit()
    visitor.open_page("first")

    def run(text: str) -> None:
        spans = [match.span() for match in re.finditer(r"\w+|\W", text)]
        parts = visitor.pair(text, dict(enumerate(spans)), state.values)
        visitor.renew(defaults, parts, state)
        for key, part in zip(state, parts, strict=True):
            visitor.keep(key, state[key], part.says, named=False)

    run("A dog saw it")
    assert state == {"query": 3, "key": 2}  # the page was just opened
    run("A cat saw it")
    assert state == defaults
    assert PAIR not in visitor.chosen
    state.update(query=6, key=2)
    for key, part in zip(
        state,
        visitor.pair(
            "A cat saw it",
            dict(enumerate(match.span() for match in re.finditer(r"\w+|\W", "A cat saw it"))),
            state.values,
        ),
        strict=True,
    ):
        visitor.keep(key, state[key], part.says, named=False)
    assert visitor.chosen[PAIR] == Pair("A cat saw it", (10, 12), (2, 5))
    run("It was late when the black cat came home because it was hungry")
    assert state == {"query": 0, "key": 12}  # “it”, the first one, and “cat”
    run("The bird sang and then it slept in the old tree")
    assert state == {"query": 10, "key": 20}  # no “cat”: the last content word
    run("!")
    assert state == defaults


def test_what_a_page_alone_has_is_there_again_and_is_no_choice_of_a_model():
    visitor, models = Visit(), ["a", "b"]
    visitor.open_page("first")
    assert visitor.either("of", MODEL, models).brought is None
    visitor.keep("of", "b", visitor.either("of", MODEL, models).says, named=True)
    assert visitor.chosen[MODEL] == "b"
    visitor.keep("of", "the example", visitor.either("of", MODEL, models).says, named=False)
    visitor.chosen[MODEL] = "a"
    assert visitor.either("of", MODEL, models).brought == "the example"
    visitor.keep("of", "b", visitor.either("of", MODEL, models).says, named=False)
    visitor.chosen[MODEL] = "a"
    assert visitor.either("of", MODEL, models).brought == "a"
