"""A widget that is sent a value of another kind keeps the value it has."""

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates

from ui.streamlit_patches import widget_values

SENT = [field.name for field in WidgetState.DESCRIPTOR.oneofs[0].fields]
UNUSED = {"arrow_value", "bytes_value", "file_uploader_state_value", "chat_input_value"}
KINDS = sorted(set(SENT) - UNUSED)  # of the widgets on our pages


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)
    widget_values.check_value_types()


def states(kind: str | None, sent: str | None) -> WStates:
    """What a session knows of one widget of a kind, for which a value of some kind was sent."""
    message = WidgetState(id="widget")
    if sent is not None:
        field = WidgetState.DESCRIPTOR.fields_by_name[sent]
        if field.message_type is None:
            setattr(message, sent, "{}" if "json" in sent else field.default_value)
        else:
            getattr(message, sent).SetInParent()
    made = WStates()
    made.set_widget_metadata(
        WidgetMetadata("widget", lambda value: ("read", value), lambda value: value, kind)
    )
    made.set_widget_from_proto(message)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_read_if_it_has_the_kind_of_its_widget(kind: str):
    for sent in SENT:
        result = states(kind, sent)
        if kind == sent:
            assert result["widget"][0] == "read"
        else:
            with pytest.raises(KeyError):
                result["widget"]
