"""Test the visit: choices carry over to the next page, and the URL takes precedence."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from ui.widgets.visit import Visit, WordPair, find_pair, pair_parts


def page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked
    from ui.widgets.visit import open_page

    name = st.session_state["open"]
    for key in st.session_state.pop("left", []):
        del st.session_state[key]  # as Streamlit does before the first run of another page
    open_page(name)
    linked(st.text_area, "Text", value=f"of {name}", key=f"{name}_text", part="text")
    n_layers = {"first": 30, "second": 6, "third": 30}[name]
    linked(st.select_slider, "Layer", range(n_layers), 2, key=f"{name}_layer", part="layer")
    default = {"first": 1, "second": 1, "third": 3}[name]
    linked(st.select_slider, "Head", range(9), default, key=f"{name}_head", part="head")


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


def text_and_layer(site: AppTest) -> tuple[str, int]:
    assert not site.exception
    return site.text_area[0].value, site.select_slider[0].value


def test_choices_carry_over_and_back():
    site = visitor()
    site.text_area[0].set_value("mine").run()
    site.select_slider[0].set_value(4).run()
    assert text_and_layer(go(site, "second")) == ("mine", 4)
    site.text_area[0].set_value("another").run()
    assert text_and_layer(site) == ("another", 4)
    assert text_and_layer(go(site, "first")) == ("another", 4)


def test_choice_carries_over_if_the_page_is_left_before_it_reruns():
    site = visitor()
    site.select_slider[0].set_value(4)  # there is no other run before the next page opens
    go(site, "third")
    assert [slider.value for slider in site.select_slider] == [4, 1]


def leave(site: AppTest, name: str, **address: str) -> AppTest:
    """Open another page like a browser does, without the widgets of the previous page.

    address: the URL parameters of the previous page.
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
def test_choice_without_a_run_carries_over_in_the_old_url(address, third):
    assert text_and_layer(leave(visitor(), "third", **address)) == third


def test_url_older_than_a_choice_changes_nothing():
    site = visitor(first_layer="5")
    site.session_state["first_layer"] = 7  # like a click on a picture; the URL follows later
    site.run()
    assert text_and_layer(leave(site, "third", first_layer="5"))[1] == 7


def test_choice_a_page_cannot_use_waits_for_one_that_can():
    site = visitor()
    site.select_slider[0].set_value(17).run()
    assert text_and_layer(go(site, "second")) == ("of second", 2)
    assert text_and_layer(go(site, "third")) == ("of third", 17)


def test_url_takes_precedence_and_becomes_the_choice():
    site = visitor(first_layer="5")
    assert text_and_layer(site) == ("of first", 5)
    assert text_and_layer(go(site, "second", second_text="linked")) == ("linked", 5)
    assert text_and_layer(go(site, "third")) == ("linked", 5)


TEXT = "The animal it"
SPANS = {0: (0, 0), 1: (0, 3), 2: (4, 10), 3: (11, 13), 4: (13, 13)}  # [CLS] The animal it [SEP]
WITH_SPACES = {0: (0, 3), 1: (3, 10), 2: (10, 13)}
DEFAULTS = {"query": 3, "key": 2}


def by_words(text: str) -> dict[int, tuple[int, int]]:
    return dict(enumerate(match.span() for match in re.finditer(r"\w+|\W", text)))


def test_pair_is_found_by_characters_in_another_tokenization():
    query, key = pair_parts(TEXT, SPANS, DEFAULTS)
    assert query.prefill is None
    visit = query.on_change(Visit(), 3)
    assert visit.pair == WordPair(TEXT, (11, 13), (4, 10))
    assert find_pair(visit.pair, TEXT, WITH_SPACES) == (2, 1)
    assert find_pair(visit.pair, "another", WITH_SPACES) == (None, None)
    assert key.on_change(visit, 1).pair == WordPair(TEXT, (11, 13), (0, 3))
    # a special token covers no characters, so only the same tokenizer finds it
    added = query.on_change(Visit(), 4).pair
    assert find_pair(added, TEXT, SPANS) == (4, 2)
    assert find_pair(added, TEXT, WITH_SPACES) == (None, None)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("It was late when the black cat came home because it was hungry", (0, 12)),
        # the text doesn't contain “cat”, so the last content word is used
        ("The bird sang and then it slept in the old tree", (10, 20)),
        ("!", (None, None)),
    ],
)
def test_pair_keeps_its_words_in_another_text(text: str, pair: tuple):
    chosen = WordPair("A cat saw it", (10, 12), (2, 5))
    assert find_pair(chosen, text, by_words(text)) == pair


def pair_page() -> None:
    import re

    import streamlit as st

    from ui.widgets.linked import linked
    from ui.widgets.visit import current, pair_parts, revalidate

    text = st.text_input("Text", "A dog saw it")
    spans = dict(enumerate(match.span() for match in re.finditer(r"\w+|\W", text)))
    defaults = {"query": 0, "key": 0}
    parts = pair_parts(text, spans, defaults)
    if st.session_state.get("cut", text) != text:
        revalidate(defaults, parts)
    st.session_state["cut"] = text
    for (key, default), part in zip(defaults.items(), parts, strict=True):
        linked(st.select_slider, key, range(20), default, key=key, part=part)
    st.text(current().pair)


def test_only_a_selected_pair_carries_over_to_another_text():
    site = AppTest.from_function(pair_page, default_timeout=60).run()
    site.text_input[0].set_value("A cat saw it").run()
    assert site.text[0].value == "None"
    site.select_slider("query").set_value(6).run()
    site.select_slider("key").set_value(2).run()
    site.text_input[0].set_value("It was late when the black cat came home").run()
    assert [slider.value for slider in site.select_slider] == [0, 12]
    site.text_input[0].set_value("!").run()
    assert [slider.value for slider in site.select_slider] == [0, 0]
    assert "A cat saw it" in site.text[0].value
