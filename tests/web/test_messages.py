"""Test that Streamlit only receives messages that pages send, without text that harms the log."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from streamlit.proto.BackMsg_pb2 import BackMsg

from serving.limits import MAX_WIDGETS
from tests.helpers.hostile_texts import FORGED
from web.messages import FILE, KINDS, TEXTS, kind_of

ALL_KINDS = [field.name for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields]


def message(kind: str) -> BackMsg:
    """Return an empty message of this kind. A file message requests a file created on click."""
    back_message = BackMsg()
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if kind == FILE:
        back_message.backend_operation_request.deferred_file.file_id = "a file"
    elif field.message_type is None:
        setattr(back_message, kind, True)
    else:
        getattr(back_message, kind).SetInParent()
    return back_message


def passes(back_message: BackMsg) -> bool:
    return kind_of(back_message.SerializeToString()) is not None


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_only_kinds_that_pages_send_pass(kind: str):
    assert kind_of(message(kind).SerializeToString()) == (kind if kind in KINDS else None)


def test_only_file_requests_pass_among_backend_operations():
    back_message = BackMsg()
    back_message.backend_operation_request.install_skills.SetInParent()
    assert not passes(back_message)


SURROGATE = b"\x5a\x0b\x0a\x09\xed\xb2\x80123456"  # a query string that isn't UTF-8


@pytest.mark.parametrize("content", [b"", b"\xff\xff", SURROGATE])
def test_bytes_that_are_not_a_message_are_dropped(content: bytes):
    assert kind_of(content) is None


def string_fields(form: Descriptor, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path to each text field of a message, for all allowed kinds."""
    for field in form.fields:
        if not path and field.name not in KINDS:
            continue
        if field.message_type is not None:
            yield from string_fields(field.message_type, (*path, field.name))
        elif field.type == FieldDescriptor.TYPE_STRING:
            yield (*path, field.name)


def with_text(path: tuple[str, ...], text: str) -> tuple[BackMsg, str]:
    """Return a message with this text in one field, and the field's full name."""
    back_message = message(FILE) if path[0] == FILE else BackMsg()
    part = back_message
    for name in path[:-1]:
        field = part.DESCRIPTOR.fields_by_name[name]
        part = getattr(part, name).add() if field.is_repeated else getattr(part, name)
    field = part.DESCRIPTOR.fields_by_name[path[-1]]
    if field.is_repeated:
        getattr(part, field.name).append(text)
    else:
        setattr(part, field.name, text)
    return back_message, field.full_name


FIELDS = list(string_fields(BackMsg.DESCRIPTOR))


@pytest.mark.parametrize("path", FIELDS, ids=".".join)
@pytest.mark.parametrize("what", ["a line feed", "an escape sequence", "too long"])
def test_only_visitor_texts_may_contain_any_characters(path: tuple[str, ...], what: str):
    back_message, name = with_text(path, FORGED[what])
    assert passes(back_message) == (name in TEXTS)


PLAIN = {
    "rerun_script.fragment_id": "6f1ed002ab5595859014ebf0951522d9",
    "rerun_script.context_info.timezone": "America/Argentina/Buenos_Aires",
    "rerun_script.context_info.locale": "zh-Hans-CN",
    "rerun_script.context_info.color_scheme": "dark",
    "rerun_script.context_info.url": "http://localhost:8501/heads?heads_text=%20\n",
    "rerun_script.page_name": "ünbekannt",
    "rerun_script.widget_states.widgets.id": (
        "$$STREAMLIT_INTERNAL_KEY_$$ID-bce6dd770f1dfedb959f5a1b8f8bd69e-tokens_chips_GPT-2 (BPE)"
        "__events"
    ),
    "backend_operation_request.session_id": "5a4e2f38-6f50-4a0d-9a58-3a3c0f5c8d0a",
    "backend_operation_request.deferred_file.file_id": "6f1ed002ab5595859014ebf0951522d9",
}


@pytest.mark.parametrize("path", PLAIN)
def test_browser_messages_pass(path: str):
    assert passes(with_text(tuple(path.split(".")), PLAIN[path])[0])


@pytest.mark.parametrize(
    ("n_widgets", "is_allowed"), [(MAX_WIDGETS, True), (MAX_WIDGETS + 1, False)]
)
def test_number_of_widgets_is_limited(n_widgets: int, is_allowed: bool):
    back_message = message("rerun_script")
    for number in range(n_widgets):
        back_message.rerun_script.widget_states.widgets.add(
            id=f"$$ID-{number}-any", bool_value=True
        )
    assert passes(back_message) == is_allowed


@pytest.mark.parametrize("scheme", ["<b>", "light\n"])
def test_unknown_color_scheme_is_dropped(scheme: str):
    path = "rerun_script", "context_info", "color_scheme"
    assert not passes(with_text(path, scheme)[0])
