"""Widgets bound to the address: an empty parameter is read as the default."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException
from streamlit.testing.v1 import AppTest

from serving.visit import LAYER, Visit
from ui.widgets import linked

KEYS = ("segments", "pills", "radio", "free")


def page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked

    letters = ["a", "b", "c"]
    shown = {
        "segments": linked(
            st.segmented_control, "Segments", letters, default="b", required=True, key="segments"
        ),
        "pills": linked(st.pills, "Pills", letters, default="c", required=True, key="pills"),
        "radio": linked(st.radio, "Radio", letters, 1, key="radio"),
        "free": linked(st.segmented_control, "Free", letters, default="b", key="free"),
    }
    st.json(shown)


def values(**query: str) -> tuple[str, list[str]]:
    site = AppTest.from_function(page, default_timeout=60)
    for key, value in query.items():
        site.query_params[key] = value
    site.run()
    assert not site.exception
    return site.json[0].value, [toast.value for toast in site.toast]


def test_an_empty_parameter_falls_back_to_the_default_and_says_so():
    shown, toasts = values(**dict.fromkeys(KEYS, ""))
    # where nothing may be chosen, an empty parameter means just that
    assert shown == '{"segments": "b", "pills": "c", "radio": "b", "free": null}'
    assert [text.split("”")[0] for text in toasts] == [
        "The link gives “Segments", "The link gives “Pills", "The link gives “Radio",
    ]  # fmt: skip


def test_a_value_in_the_address_is_taken():
    shown, toasts = values(segments="a", pills="b", radio="c", free="a")
    assert shown == '{"segments": "a", "pills": "b", "radio": "c", "free": "a"}'
    assert not toasts


def short_text_page() -> None:
    import streamlit as st

    from ui.widgets.linked import linked

    st.text(linked(st.text_input, "Date", "today", key="page_date", max_chars=7))


def test_a_text_that_is_too_long_is_cut_and_that_is_said():
    site = AppTest.from_function(short_text_page, default_timeout=60)
    site.query_params["page_date"] = "tomorrow"
    site.run()
    assert site.text[0].value == "tomorro"
    (toast,) = site.toast
    assert toast.value.endswith("“Date” a value that is too long for it; its end is left out.")


def settings_page() -> None:
    import streamlit as st

    from ui.widgets.linked import address, linked
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
    st.json([list(pair) for pair in address("page")])


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


def test_settings_say_how_many_were_changed_and_links_leave_defaults_out():
    site = AppTest.from_function(settings_page, default_timeout=60).run()
    assert not site.exception
    assert badges(site) == []
    assert site.json[0].value == "[]"
    expected = []
    for number, (key, (kind, value, written)) in enumerate(CHANGES.items(), start=1):
        getattr(site, kind)(key).set_value(value).run()
        assert badges(site) == [f":small[:blue-badge[{number} changed]]"]
        expected.append([key, written])
    site.checkbox("page_outside").set_value(True).run()  # not among the settings
    assert badges(site) == [f":small[:blue-badge[{len(CHANGES)} changed]]"]
    assert json.loads(site.json[0].value) == sorted([*expected, ["page_outside", "true"]])
    site.slider("page_slider").set_value(4).run()  # back to the default
    assert badges(site) == [f":small[:blue-badge[{len(CHANGES) - 1} changed]]"]
    assert "page_slider" not in site.json[0].value


class Interrupted(dict[str, Any]):
    """What widgets hold, in a run that is stopped where it looks for one of them."""

    def __contains__(self, key: object) -> bool:
        raise RerunException(RerunData())


def test_what_a_stopped_run_did_not_take_the_next_one_takes(monkeypatch: pytest.MonkeyPatch):
    """The visitor moves a slider and opens another page before the server has looked at it."""
    visitor = Visit()
    visitor.keep("heads_layer", 4, lambda value: {LAYER: value}, named=True)
    last_run = {"visit": visitor, "linked_asked": ("heads", {"heads_layer": ["4"]})}
    request = SimpleNamespace(page_script_hash="heads", query_string="heads_layer=5")
    monkeypatch.setattr(linked, "get_script_run_ctx", lambda: request)
    monkeypatch.setattr(linked.st, "session_state", Interrupted(last_run))
    with pytest.raises(RerunException):
        linked.take()
    # of a page that is left the browser sends no widgets
    monkeypatch.setattr(linked.st, "session_state", last_run)
    linked.take()
    assert visitor.chosen == {LAYER: 5}
