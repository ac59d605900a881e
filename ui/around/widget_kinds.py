"""A widget takes values of its own kind alone.

Streamlit hands a widget whatever kind of value a message holds for it. A slider that gets a text
then ends the page with an error, and a traceback in the log, for each of a visitor's messages.
"""

from __future__ import annotations

from typing import Any

from streamlit.runtime.state.session_state import Serialized, WStates

_value_of = WStates.__getitem__


def check_kinds() -> None:
    """Treat a value of another kind than its widget's as one that was not sent."""
    WStates.__getitem__ = _checked_value_of  # type: ignore[method-assign]


def _checked_value_of(states: WStates, widget_id: str) -> Any:
    state, widget = states.states.get(widget_id), states.widget_metadata.get(widget_id)
    if isinstance(state, Serialized) and widget is not None:
        kind = state.value.WhichOneof("value")
        # no kind: the visitor has cleared the widget; then Streamlit forgets the widget's kind too
        if kind is not None and widget.value_type is not None and kind != widget.value_type:
            raise KeyError(widget_id)
    return _value_of(states, widget_id)
