"""Test that a widget keeps its value if it's sent a value of a different type."""

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates

from ui.streamlit_patches import widget_values

SENT = [field.name for field in WidgetState.DESCRIPTOR.oneofs[0].fields]
UNUSED = {"arrow_value", "bytes_value", "file_uploader_state_value", "chat_input_value"}
KINDS = sorted(set(SENT) - UNUSED)  # the kinds of widgets on our pages


@pytest.fixture(autouse=True)
def _check_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)
    widget_values.check_value_types()


def states(kind: str | None, sent: str | None) -> WStates:
    """Return the state of one widget of this kind after a value of kind `sent` was sent for it."""
    message = WidgetState(id="widget")
    if sent is not None:
        field = WidgetState.DESCRIPTOR.fields_by_name[sent]
        if field.message_type is None:
            setattr(message, sent, "{}" if "json" in sent else field.default_value)
        else:
            getattr(message, sent).SetInParent()
    result = WStates()
    result.set_widget_metadata(
        WidgetMetadata("widget", lambda value: ("read", value), lambda value: value, kind)
    )
    result.set_widget_from_proto(message)
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_value_is_read_if_it_matches_the_widget_kind(kind: str):
    for sent in SENT:
        result = states(kind, sent)
        if kind == sent:
            assert result["widget"][0] == "read"
        else:
            with pytest.raises(KeyError):
                result["widget"]
