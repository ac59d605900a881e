"""The parts of a page: one is made at a time, the address names it, nothing is forgotten."""

from streamlit.testing.v1 import AppTest

from ui.widgets.section_picker import ALL_SECTIONS


def page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked
    from ui.widgets.section_picker import section_picker

    shown = section_picker("page_part", ("numbers", "chart"))
    if "numbers" in shown:
        linked(st.slider, "Size", 1, 9, 4, key="page_size")
    if "chart" in shown:
        linked(st.selectbox, "Colour", ["red", "blue"], key="page_colour")
    st.text(" ".join(shown))


def opened(**query: str) -> AppTest:
    site = AppTest.from_function(page, default_timeout=60)
    for key, value in query.items():
        site.query_params[key] = value
    site.run()
    assert not site.exception
    return site


def test_a_link_opens_a_part_or_all():
    assert opened(page_part="chart").text[0].value == "chart"
    assert opened(page_part=ALL_SECTIONS).text[0].value == "numbers chart"
    nonsense = opened(page_part="no such part")
    assert nonsense.text[0].value == "numbers"
    assert nonsense.toast


def test_what_was_chosen_in_a_part_is_there_again():
    site = opened(page_size="7")
    site.button_group("page_part").set_value("chart").run()
    assert not site.slider
    site.selectbox("page_colour").set_value("blue").run()
    site.button_group("page_part").set_value("numbers").run()
    assert site.slider("page_size").value == 7
    site.slider("page_size").set_value(2).run()
    site.button_group("page_part").set_value(ALL_SECTIONS).run()
    assert site.slider("page_size").value == 2
    assert site.selectbox("page_colour").value == "blue"
