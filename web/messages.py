"""A filter for Streamlit's protocol that accepts only messages that the site's pages send.

Streamlit accepts more: any client can make it run git, some messages make it fail with a traceback,
and it writes identifiers into the log unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage
from streamlit.proto.BackMsg_pb2 import BackMsg

from serving.limits import MAX_WIDGETS

FILE = "backend_operation_request"
KINDS = frozenset({"rerun_script", "stop_script", "app_heartbeat", FILE})
# Fields with a visitor's text or URL, which may contain any characters.
TEXTS = frozenset(
    {
        "ClientState.query_string",
        "ClientState.page_name",
        "ContextInfo.url",
        "WidgetState.string_value",
        "WidgetState.json_value",
        "WidgetState.json_trigger_value",
        "StringArray.data",
        "StringTriggerValue.data",
    }
)
_IDENTIFIER = re.compile(r"[ -~]{0,250}")  # a widget's id ends with its key
_COLOR_SCHEMES = ("", "light", "dark")  # Streamlit fails on any other


def kind_of(content: bytes) -> str | None:
    """The kind of a message that our pages send; None for any other, which is to be dropped."""
    try:
        message = BackMsg.FromString(content)
    except DecodeError:
        return None
    kind = message.WhichOneof("type")
    operation = message.backend_operation_request.WhichOneof("payload")
    is_ours = kind in KINDS and (kind != FILE or operation == "deferred_file")
    return kind if is_ours and _is_plain(message) else None


def _is_plain(message: BackMsg) -> bool:
    """Whether identifiers are short and printable ASCII, and there aren't too many widgets."""
    rerun = message.rerun_script
    return (
        len(rerun.widget_states.widgets) <= MAX_WIDGETS
        and rerun.context_info.color_scheme in _COLOR_SCHEMES
        and all(name in TEXTS or _IDENTIFIER.fullmatch(text) for name, text in _strings(message))
    )


def _strings(message: ProtobufMessage) -> Iterator[tuple[str, str]]:
    """All texts in a message, each with the full name of its field."""
    for field, value in message.ListFields():
        for part in value if field.is_repeated else [value]:
            if isinstance(part, ProtobufMessage):
                yield from _strings(part)
            elif isinstance(part, str):
                yield field.full_name, part
