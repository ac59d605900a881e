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
    assert parameters.say(["not the last", asked], value) is expected


@pytest.mark.parametrize(
    ("texts", "value", "expected"),
    [
        (["L1H2", "L3H4"], ["L1H2", "L3H4"], True),
        (["1", "2"], [1, 2], True),
        (["L3H4", "L1H2"], ["L1H2", "L3H4"], False),
        (["L1H2"], ["L1H2", "L3H4"], False),
        ([""], [], True),
        ([""], ["L1H2"], False),
    ],
)
def test_texts_mean_a_list(texts: list[str], value: list[object], expected: bool):
    assert parameters.say(texts, value) is expected


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
    ("value", "texts"),
    [
        (True, ["true"]),
        (2.0, ["2"]),
        (0.25, ["0.25"]),
        (None, [""]),
        (7, ["7"]),
        ([], [""]),
        (["L1H2", "L3H4"], ["L1H2", "L3H4"]),
    ],
)
def test_a_value_is_written_as_it_is_read(value: object, texts: list[str]):
    assert parameters.written(value) == texts
    assert parameters.say(texts, value)
    assert parameters.read(texts, value) == value
