from benchmarks.timing import table


def test_table_aligns_columns():
    assert table([("", "rate"), ("core", "10.5"), ("x", "9")]) == (
        "      rate\n----  ----\ncore  10.5\nx        9"
    )
