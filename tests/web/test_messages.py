"""Only messages that pages send reach Streamlit, with nothing in them that could harm the log."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from streamlit.proto.BackMsg_pb2 import BackMsg

from serving.limits import MAX_WIDGETS
from tests.helpers.hostile_texts import FORGED
from web.messages import FILE, KINDS, TEXTS, kind_of

ALL_KINDS = [field.name for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields]


def message(kind: str) -> BackMsg:
    """An empty message of this kind; a file is one that is computed on a click."""
    made = BackMsg()
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if kind == FILE:
        made.backend_operation_request.deferred_file.file_id = "a file"
    elif field.message_type is None:
        setattr(made, kind, True)
    else:
        getattr(made, kind).SetInParent()
    return made


def passes(made: BackMsg) -> bool:
    return kind_of(made.SerializeToString()) is not None


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_only_kinds_that_pages_send_pass(kind: str):
    assert kind_of(message(kind).SerializeToString()) == (kind if kind in KINDS else None)


def test_of_backend_operations_only_files_pass():
    made = BackMsg()
    made.backend_operation_request.install_skills.SetInParent()
    assert not passes(made)


SURROGATE = b"\x5a\x0b\x0a\x09\xed\xb2\x80123456"  # a query string that is not UTF-8


@pytest.mark.parametrize("content", [b"", b"\xff\xff", SURROGATE])
def test_bytes_that_are_not_a_message_are_dropped(content: bytes):
    assert kind_of(content) is None


def string_fields(form: Descriptor, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path to each text field of a message, in all allowed kinds."""
    for field in form.fields:
        if not path and field.name not in KINDS:
            continue
        if field.message_type is not None:
            yield from string_fields(field.message_type, (*path, field.name))
        elif field.type == FieldDescriptor.TYPE_STRING:
            yield (*path, field.name)


def with_text(path: tuple[str, ...], text: str) -> tuple[BackMsg, str]:
    """A message with this text in one field, and the field's full name."""
    made = message(FILE) if path[0] == FILE else BackMsg()
    part = made
    for name in path[:-1]:
        field = part.DESCRIPTOR.fields_by_name[name]
        part = getattr(part, name).add() if field.is_repeated else getattr(part, name)
    field = part.DESCRIPTOR.fields_by_name[path[-1]]
    if field.is_repeated:
        getattr(part, field.name).append(text)
    else:
        setattr(part, field.name, text)
    return made, field.full_name


FIELDS = list(string_fields(BackMsg.DESCRIPTOR))


@pytest.mark.parametrize("path", FIELDS, ids=".".join)
@pytest.mark.parametrize("what", ["a line feed", "an escape sequence", "too long"])
def test_only_texts_of_visitors_may_hold_any_characters(path: tuple[str, ...], what: str):
    made, name = with_text(path, FORGED[what])
    assert passes(made) == (name in TEXTS)


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
def test_what_a_browser_sends_passes(path: str):
    assert passes(with_text(tuple(path.split(".")), PLAIN[path])[0])


@pytest.mark.parametrize(
    ("n_widgets", "is_allowed"), [(MAX_WIDGETS, True), (MAX_WIDGETS + 1, False)]
)
def test_a_message_holds_no_more_widgets_than_pages_have(n_widgets: int, is_allowed: bool):
    made = message("rerun_script")
    for number in range(n_widgets):
        made.rerun_script.widget_states.widgets.add(id=f"$$ID-{number}-any", bool_value=True)
    assert passes(made) == is_allowed


@pytest.mark.parametrize("scheme", ["<b>", "light\n"])
def test_a_color_scheme_that_no_browser_has_is_dropped(scheme: str):
    path = "rerun_script", "context_info", "color_scheme"
    assert not passes(with_text(path, scheme)[0])
