"""Exercise sheets: solutions match arithmetic on the printed numbers."""

import itertools
import math
import re
from decimal import ROUND_HALF_UP, Decimal
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.teaching.exercise_sheet import by_hand, exercise, from_model, sheet, sizes
from pages.teaching.exercise_sheet.exercise import Table
from serving.limits import OverLimit
from tests.helpers.apptest import messages, open_page
from tests.helpers.bundled_models import DECODER, bundled_model, weights
from ui.widgets import controls

VIEW = "pages/teaching/exercise_sheet/page.py"
LABELS = ("The", "cat", "sat", "down")
VARIANTS = [0, 1, 7, 42, 99_999]
SENTENCES = [controls.ANIMAL, "Ships sail at night", "naïve 日本語 👩‍👧", "שלום עולם"]
HOSTILE = "<b>a</b><script>alert(1)</script> \u202e שלום 👩‍👧 & \"'"


def numbers(table: Table) -> np.ndarray:
    """The cells of a table as numbers. A masked score is minus infinity."""
    minus = "\u2212"
    return np.array(
        [
            [float(cell.replace(minus, "-").replace("∞", "inf").replace(",", "")) for cell in cells]
            for _, cells in table.rows
        ]
    )


def half_up(value: float, places: int) -> float:
    """Round half up, as taught at school."""
    return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def exact_sum(factors: np.ndarray, others: np.ndarray) -> float:
    """A sum of products of short decimals, without rounding."""
    pairs = zip(factors, others, strict=True)
    return float(sum(Decimal(str(float(a))) * Decimal(str(float(b))) for a, b in pairs))


def by_pencil(row: np.ndarray) -> list[float]:
    """The weights of a row, with exponentials to three decimals and quotients to two."""
    powers = [half_up(math.exp(value), 3) for value in row]
    return [half_up(power / sum(powers), 2) for power in powers]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_tokens", [3, 4])
def test_scores(variant: int, n_tokens: int):
    problem = by_hand.scores(LABELS[:n_tokens], variant)
    (query,), keys = (numbers(table) for table in problem.data_tables)
    products = [exact_sum(query, key) for key in keys]
    assert numbers(problem.answer_tables[0])[0].tolist() == products
    best = LABELS[max(range(n_tokens), key=lambda i: products[i])]
    assert problem.steps[-1].startswith(f"{best} has the largest score")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_tokens", [3, 4])
def test_softmax(variant: int, n_tokens: int):
    problem = by_hand.softmax(LABELS[:n_tokens], variant)
    (scores,) = numbers(problem.data_tables[0])
    size = int(re.search(r"d = (\d) elements", problem.task[0])[1])  # type: ignore[index]
    scaled, powers, shares = numbers(problem.answer_tables[0])
    assert scaled.tolist() == [half_up(score / round(size**0.5, 3), 2) for score in scores]
    assert powers.tolist() == [half_up(math.exp(value), 3) for value in scaled]
    assert shares.tolist() == by_pencil(scaled)
    # Without intermediate rounding, the digits are the same.
    exact = torch.softmax(torch.tensor(scores) / size**0.5, -1).tolist()
    assert shares.tolist() == [half_up(weight, 2) for weight in exact]
    assert round(100 * shares.sum()) == 100
    assert f"√{size} = {size**0.5:.3f}" in problem.steps


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_tokens", [3, 4])
def test_mask(variant: int, n_tokens: int):
    problem = by_hand.mask(LABELS[:n_tokens], variant)
    scores, (masked, shares) = (
        numbers(problem.data_tables[0]),
        map(numbers, problem.answer_tables),
    )
    allowed = np.tril(np.ones((n_tokens, n_tokens), bool))
    np.testing.assert_array_equal(masked, np.where(allowed, scores, -np.inf))
    for query, row in enumerate(scores):
        expected = by_pencil(row[: query + 1]) + [0.0] * (n_tokens - query - 1)
        assert shares[query].tolist() == expected
        assert round(100 * sum(expected)) == 100
    s = torch.tensor(scores)
    eye = torch.eye(n_tokens, dtype=s.dtype)
    torchs = torch.nn.functional.scaled_dot_product_attention(
        s, eye, eye, torch.tensor(allowed), scale=1.0
    )
    np.testing.assert_allclose(shares, torchs, atol=0.005)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_tokens", [3, 4])
def test_context(variant: int, n_tokens: int):
    problem = by_hand.context(LABELS[:n_tokens], variant)
    table = numbers(problem.data_tables[0])
    shares, values = table[:, 0], table[:, 1:]
    assert round(100 * shares.sum()) == 100
    assert (shares > 0).all()
    sums = [exact_sum(shares, column) for column in values.T]
    assert numbers(problem.answer_tables[0])[0].tolist() == sums


@pytest.mark.parametrize("variant", VARIANTS)
def test_shapes(variant: int):
    problem = sizes.shapes(variant)
    result = re.search(r"B = (\d+) .* T = (\d+) .* H = (\d+) .* D = (\d+)", problem.task[0])
    assert result is not None
    batch, tokens, heads, size = map(int, result.groups())
    width = heads * size
    shapes = [cells[0] for _, cells in problem.answer_tables[0].rows]
    joint, cut = (batch, tokens, width), (batch, heads, tokens, size)
    square = (batch, heads, tokens, tokens)
    transposed = (batch, heads, size, tokens)
    expected = [
        joint,
        joint,
        cut,
        transposed,
        square,
        square,
        cut,
        joint,
        joint,
    ]
    assert shapes == [str(shape) for shape in expected]
    layer = torch.nn.MultiheadAttention(width, heads, bias=False)
    n = sum(parameter.numel() for parameter in layer.parameters()) + width
    assert numbers(problem.answer_tables[1]) == [[n]]
    assert problem.steps[-1].endswith(f"= {n:,} parameters")


@pytest.mark.parametrize("variant", VARIANTS)
def test_cache(variant: int):
    problem = sizes.cache(variant)
    task = problem.task[0]
    result = re.search(r"has (\d+) layers and (\d+) query heads of size D = (\d+)", task)
    match = re.search(r"stores ([\d,]+) tokens in (\w+), with (\d) bytes", task)
    assert result is not None
    assert match is not None
    layers, heads, size = map(int, result.groups())
    tokens, width = int(match[1].replace(",", "")), int(match[3])
    assert width == torch.empty(0, dtype=getattr(torch, match[2])).element_size()
    rows = numbers(problem.answer_tables[0])
    for (n_heads, n_bytes, n_mib, smaller), expected in zip(
        rows, (heads, heads / 4, 1), strict=True
    ):
        keys = np.empty((layers, int(n_heads), tokens, size), f"V{width}")
        assert n_heads == expected
        assert n_bytes == 2 * keys.nbytes
        assert n_mib == n_bytes / 1_048_576
        assert smaller == heads / n_heads
    without, cached, saved = numbers(problem.answer_tables[1])[:, 0]
    # Multiplying (a, b) by (b, c) takes a * b * c multiplications. Each head does it twice.
    assert without == heads * (tokens * size * tokens + tokens * tokens * size)
    assert cached == heads * (1 * size * tokens + 1 * tokens * size)
    assert saved == without - cached


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("variant", VARIANTS[:3])
@pytest.mark.usefixtures("bundled_weights")
def test_real_attention_map(sentence: str, variant: int):
    (problem,) = sheet.sheet(DECODER, sentence, ["a real map"], variant).exercises
    result = re.search(r"head L(\d+)H(\d+) ", problem.task[0])
    assert result is not None
    printed = numbers(problem.data_tables[0])
    n = len(printed)
    original = weights(DECODER, sentence, int(result[1]), int(result[2]))[:n, :n]
    np.testing.assert_allclose(printed, original, atol=0.005 + 1e-5)
    names = problem.data_tables[0].columns
    for query, (_, (top, total)) in enumerate(problem.answer_tables[0].rows):
        largest = np.flatnonzero(printed[query] == max(printed[query]))
        assert top == ", ".join(names[key] for key in largest)
        assert float(total) == pytest.approx(printed[query].sum(), abs=1e-9)
    assert (printed[np.triu_indices(n, 1)] == 0).all()
    n_masked = n * (n - 1) // 2
    assert f"{n_masked} cells above the diagonal; {n_masked} of them" in problem.steps[0]
    small = int((printed[np.tril_indices(n)] == 0).sum())
    pattern = rf"turned {small} weights? on or below"
    assert any(re.search(pattern, step) for step in problem.steps) == bool(small)


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.usefixtures("bundled_weights")
def test_tokens(sentence: str):
    (problem,) = sheet.sheet(DECODER, sentence, ["tokens"], 1).exercises
    tokens = bundled_model(DECODER).tokenizer.encode(sentence)
    counts = numbers(problem.answer_tables[0])[:, 0].tolist()
    assert counts == [len(sentence), len(sentence.split()), len(tokens)]
    solution_rows = [[cells for _, cells in table.rows] for table in problem.solution_tables]
    assert [label[1:-1] for labels, _ in solution_rows for label in labels] == list(tokens.labels)
    assert [int(text) for _, ids in solution_rows for text in ids] == list(tokens.ids)


def test_variants_have_different_numbers():
    """The same link always gives the same numbers, even after a restart."""
    for make in (by_hand.scores, by_hand.softmax, by_hand.mask, by_hand.context):
        assert make(LABELS, 1) == make(LABELS, 1)
        assert make(LABELS, 1).data_tables != make(LABELS, 2).data_tables
    assert sizes.cache(1).task != sizes.cache(2).task
    assert by_hand.scores(LABELS, 1).data_tables[0].rows[0][1] == ("0.6", "\u22120.5", "1.2")


def test_informative_head_does_not_attend_to_the_first_token():
    maps = np.zeros((2, 9, 3, 3))
    maps[..., 0] = 1.0
    maps[1, 4, 2] = [0, 1, 0]  # The last token attends to the previous one.
    names = {str(from_model.informative_head(maps, variant)) for variant in range(200)}
    assert "L1H4" in names
    assert len(names) == from_model.INFORMATIVE_HEADS


def test_empty_table_has_no_values():
    table = Table("a", ("b",), (("c", ("1",)),))
    assert table.empty() == Table("a", ("b",), (("c", ("",)),))
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table("a", ("b",), (("c", ("1", "2")),))


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(-0.004, 2, "0.00"), (-1.5, 1, "\u22121.5"), (2, 3, "2.000"), (-0.0, 1, "0.0")],
)
def test_number_format(value: float, places: int, text: str):
    assert exercise.format_number(value, places) == text


class DocumentParser(HTMLParser):
    """Collect the elements and the text of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.usefixtures("bundled_weights")
def test_hostile_sentence_is_only_text():
    kinds = list(sheet.KINDS)
    hostile, usual = (sheet.sheet(DECODER, text, kinds, 3) for text in (HOSTILE, controls.ANIMAL))
    document = DocumentParser(sheet.html(hostile))
    assert document.tags == DocumentParser(sheet.html(usual)).tags
    assert document.text.count(HOSTILE) == 2  # Once in the exercises and once in the solutions.
    saved = DocumentParser(sheet.document(hostile).decode())
    assert saved.tags == DocumentParser(sheet.document(usual).decode()).tags
    assert "script" not in saved.tags
    assert "noscript" not in saved.tags
    assert b"script-src 'none'" in sheet.document(hostile)


@pytest.mark.usefixtures("bundled_weights")
def test_exercises_do_not_include_solutions():
    printed = sheet.sheet(DECODER, controls.ANIMAL, list(sheet.KINDS), 1)
    exercises, solutions = sheet.html(printed).split('<section class="solutions">')
    assert len(printed.exercises) == exercises.count("<li>") == solutions.count("<li>") == 8
    for problem in printed.exercises:
        for step in problem.steps:
            assert step not in DocumentParser(exercises).text
            assert step in DocumentParser(solutions).text
        requested = itertools.chain.from_iterable(
            cells for t in problem.answer_tables for _, cells in t.rows
        )
        assert all(f"<td>{cell}</td>" in solutions for cell in requested if cell.isdigit())
    cells = re.findall('<table class="asked">(.*?)</table>', exercises)
    assert cells
    assert not re.search("<td>[^<]+</td>", "".join(cells))


@pytest.mark.usefixtures("bundled_weights")
def test_rejects_unusable_sentences():
    with pytest.raises(ValueError, match="only 1 token, .* at least 3"):
        sheet.sheet(DECODER, "x", ["tokens"], 1)
    with pytest.raises(OverLimit, match="over the limit of 40 for an exercise sheet"):
        sheet.sheet(DECODER, "word " * 50, ["tokens"], 1)
    with pytest.raises(OverLimit, match="10,000 characters"):
        sheet.sheet(DECODER, "x" * 10_000, ["tokens"], 1)
    with pytest.raises(ValueError, match="unknown kinds of exercises"):
        sheet.sheet(DECODER, controls.ANIMAL, ["poems"], 1)


def sheets(site: AppTest) -> list[str]:
    """The sheets on the page, as HTML."""
    bodies = [element.proto.body for element in site.get("html")]
    return [body for body in bodies if 'class="sheet"' in body]


@pytest.mark.usefixtures("bundled_weights")
def test_page_shows_the_linked_sheet(site: AppTest):
    query = {"exercise_sheet_text": "Ships sail at night", "exercise_sheet_variant": "12"}
    open_page(site, VIEW, **query, exercise_sheet_kinds="mask")
    assert not site.exception
    assert not site.toast
    (html,) = sheets(site)
    expected = sheet.html(sheet.sheet(DECODER, "Ships sail at night", ["mask"], 12))
    assert expected in html
    site.button_group(key="exercise_sheet_kinds").set_value([]).run()
    assert sheets(site) == []
    assert any("at least one exercise" in message for message in messages(site))


@pytest.mark.parametrize("text", ["", "x", HOSTILE, "word " * 60])
@pytest.mark.usefixtures("bundled_weights")
def test_all_kinds_of_sentences(site: AppTest, text: str):
    open_page(site, VIEW, exercise_sheet_text=text)
    assert not site.exception
    assert bool(sheets(site)) != bool(messages(site))
    assert site.text_input("exercise_sheet_text").value == text


@pytest.mark.usefixtures("bundled_weights")
def test_course_skips_the_exercise_sheet(site: AppTest):
    """One pass leads to Learn, and the sheet has no next page."""
    open_page(site, "pages/start/one_pass/page.py")
    assert [link.proto.label for link in site.get("page_link")][-1] == "Next: Tokens"
    open_page(site, VIEW)
    assert not [link for link in site.get("page_link") if link.proto.label.startswith("Next")]


def test_tied_keys_are_both_named():
    last = by_hand.scores(("a", "b", "c", "d"), 45).steps[-1]
    assert last.startswith("c and d share the largest score")
