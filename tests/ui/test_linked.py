"""Widgets bound to the address: an empty parameter is read as the default."""

from streamlit.testing.v1 import AppTest

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
