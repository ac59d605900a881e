"""Test page sections: one is drawn at a time, the URL names it, and choices are kept."""

from streamlit.testing.v1 import AppTest

from ui.widgets.section_picker import ALL_SECTIONS


def page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked
    from ui.widgets.section_picker import section_picker

    section = section_picker("page_part", ("numbers", "chart"))
    if "numbers" in section:
        linked(st.slider, "Size", 1, 9, 4, key="page_size")
    if "chart" in section:
        linked(st.selectbox, "Colour", ["red", "blue"], key="page_colour")
    st.text(" ".join(section))


def open_sections(**query: str) -> AppTest:
    site = AppTest.from_function(page, default_timeout=60)
    for key, value in query.items():
        site.query_params[key] = value
    site.run()
    assert not site.exception
    return site


def test_link_opens_one_section_or_all():
    assert open_sections(page_part="chart").text[0].value == "chart"
    assert open_sections(page_part=ALL_SECTIONS).text[0].value == "numbers chart"
    nonsense = open_sections(page_part="no such part")
    assert nonsense.text[0].value == "numbers"
    assert nonsense.toast


def test_choices_in_a_section_are_restored():
    site = open_sections(page_size="7")
    site.button_group("page_part").set_value("chart").run()
    assert not site.slider
    site.selectbox("page_colour").set_value("blue").run()
    site.button_group("page_part").set_value("numbers").run()
    assert site.slider("page_size").value == 7
    site.slider("page_size").set_value(2).run()
    site.button_group("page_part").set_value(ALL_SECTIONS).run()
    assert site.slider("page_size").value == 2
    assert site.selectbox("page_colour").value == "blue"
