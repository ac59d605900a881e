"""Every value of a widget is a text in the address, and every text is a value again."""

import pytest

from serving import parameters


@pytest.mark.parametrize(
    ("asked", "value", "expected"),
    [
        ("3", 3, True),
        ("3.0", 3, True),
        ("4", 3, False),
        ("x", 3, False),
        ("0.70", 0.7, True),
        ("true", True, True),
        ("1", True, False),
        ("", None, True),
        ("a", "a", True),
        ("a", "b", False),
    ],
)
def test_a_text_means_a_value(asked: str, value: object, expected: bool):
    assert parameters.says(asked, value) is expected


@pytest.mark.parametrize(
    ("texts", "like", "expected"),
    [
        (["5"], 2, 5),
        (["5.0"], 2, 2),  # no whole number
        (["1e400"], 2, 2),
        (["1e400"], 2.0, 2.0),
        (["maybe"], False, False),
        (["maybe"], True, True),
        (["0.5"], 1.0, 0.5),
        (["0.70"], 0.7, 0.7),
        (["nothing"], 1.0, 1.0),
        (["true"], False, True),
        (["False"], False, False),
        (["one", "two"], "three", "two"),
        ([""], None, None),
        (["one"], None, "one"),
        (["L1H2", "L3H4"], [], ["L1H2", "L3H4"]),
        ([""], ["L1H2"], []),
        (["1", "2"], [1, 2], [1, 2]),
    ],
)
def test_a_text_gives_a_value_of_the_same_type(texts, like, expected):
    value = parameters.read(texts, like)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (2.0, "2"), (0.25, "0.25"), (None, ""), (7, "7")]
)
def test_a_value_is_written_as_it_is_read(value, text):
    assert parameters.written(value) == text
    assert parameters.says(text, value)
    assert parameters.read([text], value) == value
