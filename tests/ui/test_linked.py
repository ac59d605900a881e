"""Test widgets bound to the URL."""

import json

import pytest
from streamlit.testing.v1 import AppTest

KEYS = ("segments", "pills", "radio", "free")


def page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked

    letters = ["a", "b", "c"]
    current = {
        "segments": linked(
            st.segmented_control, "Segments", letters, default="b", required=True, key="segments"
        ),
        "pills": linked(st.pills, "Pills", letters, default="c", required=True, key="pills"),
        "radio": linked(st.radio, "Radio", letters, 1, key="radio"),
        "free": linked(st.segmented_control, "Free", letters, default="b", key="free"),
    }
    st.json(current)


def values(**query: str) -> tuple[str, list[str]]:
    site = AppTest.from_function(page, default_timeout=60)
    for key, value in query.items():
        site.query_params[key] = value
    site.run()
    assert not site.exception
    return site.json[0].value, [toast.value for toast in site.toast]


def test_empty_parameter_falls_back_to_the_default_with_a_notice():
    result, toasts = values(**dict.fromkeys(KEYS, ""))
    # where an empty selection is allowed, an empty parameter means exactly that
    assert result == '{"segments": "b", "pills": "c", "radio": "b", "free": null}'
    assert len(toasts) == 3


def settings_page() -> None:
    import streamlit as st

    from ui.widgets.linked import link_parameters, linked
    from ui.widgets.settings import settings

    with st.container(horizontal=True), settings():
        linked(st.slider, "Slider", 1, 9, 4, key="page_slider")
        linked(st.slider, "Share", 0.0, 1.0, key="page_share")
        linked(st.select_slider, "Sizes", range(2, 8), 3, key="page_sizes")
        linked(st.selectbox, "Box", ["a", "b", "c"], 1, key="page_box")
        linked(st.toggle, "On", True, key="page_on")
        linked(st.multiselect, "Several", ["x", "y", "z"], ["y"], key="page_several")
        linked(st.pills, "Pills", ["p", "q"], selection_mode="multi", key="page_pills")
        linked(st.text_input, "Text", "plain", key="page_text")
        linked(st.number_input, "Number", 0.0, 9.0, 5.0, key="page_number")
    linked(st.checkbox, "Outside", key="page_outside")
    st.json([list(pair) for pair in link_parameters("page")])


CHANGES = {
    "page_slider": ("slider", 5, "5"),
    "page_share": ("slider", 0.5, "0.5"),
    "page_sizes": ("select_slider", 7, "7"),
    "page_box": ("selectbox", "a", "a"),
    "page_on": ("toggle", False, "false"),
    "page_several": ("multiselect", [], ""),
    "page_pills": ("button_group", ["q"], "q"),
    "page_text": ("text_input", "other", "other"),
    "page_number": ("number_input", 6.0, "6"),
}


def badges(site: AppTest) -> list[str]:
    return [element.value for element in site.markdown if "badge" in element.value]


def test_settings_count_changes_and_links_omit_defaults():
    site = AppTest.from_function(settings_page, default_timeout=60).run()
    assert not site.exception
    assert badges(site) == []
    assert site.json[0].value == "[]"
    expected = []
    for number, (key, (kind, value, link)) in enumerate(CHANGES.items(), start=1):
        getattr(site, kind)(key).set_value(value).run()
        [badge] = badges(site)
        assert f"[{number} " in badge
        expected.append([key, link])
    site.checkbox("page_outside").set_value(True).run()  # this one isn't part of the settings
    assert badges(site) == [badge]
    assert json.loads(site.json[0].value) == sorted([*expected, ["page_outside", "true"]])
    site.slider("page_slider").set_value(4).run()  # back to the default
    assert badges(site) != [badge]
    assert "page_slider" not in site.json[0].value


def test_link_restores_every_kind_of_widget():
    site = AppTest.from_function(settings_page, default_timeout=60)
    for key, (_, _, text) in CHANGES.items():
        site.query_params[key] = text
    site.run()
    assert not site.toast
    assert json.loads(site.json[0].value) == sorted(
        [key, text] for key, (*_, text) in CHANGES.items()
    )


def named_page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked

    visible = {"bert": "BERT novels", "gpt2": "GPT-2 novels"}
    st.text(linked(st.selectbox, "Model", list(visible), key="model", format_func=visible.get))


@pytest.mark.parametrize(
    ("text", "model"), [("gpt2", "gpt2"), ("GPT-2 novels", "gpt2"), ("t5", "bert")]
)
def test_link_accepts_the_name_or_title_of_an_option(text: str, model: str):
    site = AppTest.from_function(named_page, default_timeout=60)
    site.query_params["model"] = text
    site.run()
    assert site.text[0].value == model
    assert bool(site.toast) == (text == "t5")


@pytest.mark.parametrize("text", ["2.0", "4", "nan", ""])
def test_invalid_number_falls_back_with_a_toast(text: str):
    def page() -> None:
        import streamlit as st

        from ui.widgets.linked import linked

        st.text(linked(st.slider, "Number", 1, 3, 1, key="number"))

    site = AppTest.from_function(page, default_timeout=60)
    site.query_params["number"] = text
    site.run()
    assert not site.exception
    assert site.text[0].value == ("2" if text == "2.0" else "1")
    assert bool(site.toast) == (text != "2.0")
