"""Make widgets ignore values of the wrong type.

Streamlit passes on whatever type of value a browser message contains. If a slider gets a string,
the page fails and logs a traceback, and it does so for every such message.
"""

from __future__ import annotations

from typing import Any

from streamlit.runtime.state.session_state import Serialized, WStates

_value_of = WStates.__getitem__


def check_value_types() -> None:
    """Treat a value of the wrong type as if it hadn't been sent."""
    WStates.__getitem__ = _checked_value  # type: ignore[method-assign]


def _checked_value(states: WStates, widget_id: str) -> Any:
    state, widget = states.states.get(widget_id), states.widget_metadata.get(widget_id)
    if isinstance(state, Serialized) and widget is not None:
        kind = state.value.WhichOneof("value")
        # kind is None if the visitor cleared the widget; Streamlit then drops value_type, too
        if kind is not None and widget.value_type is not None and kind != widget.value_type:
            raise KeyError(widget_id)
    return _value_of(states, widget_id)
