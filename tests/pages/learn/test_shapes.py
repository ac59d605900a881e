"""The Shapes page: numbers and cells at every step, invalid sizes, real layers."""

import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn import functional

from attention_core.ladder import MultiHeadAttention
from pages.learn.shapes.questions import questions
from tests.helpers.apptest import (
    FRAME,
    ROOT,
    code,
    messages,
    open_page,
    plain_tables,
)
from tests.helpers.arithmetic import result
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.drawn_tensors import DrawnPanel, drawings, drawn_panels
from tests.helpers.lectures import LECTURE_NUMBERS

VIEW = "pages/learn/shapes/page.py"
LECTURE = LECTURE_NUMBERS["000_weight_splits"]
WORDS = "The cat sleeps on the warm mat"
T, D_IN, D_OUT, H = 3, 6, 6, 2
D = D_OUT // H


def open_step(site: AppTest, number: int, **query: str) -> dict[str, DrawnPanel]:
    open_page(site, VIEW, shapes_step=str(number), **query)
    assert not site.exception
    return drawn_panels(site)


def example_attention() -> tuple[MultiHeadAttention, torch.Tensor]:
    """The page's tensors at its defaults, sampled with plain PyTorch."""
    x = torch.randn(T, D_IN, generator=torch.Generator().manual_seed(123))[None]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        attention = MultiHeadAttention(D_IN, D_OUT, 6, 0.0, H).eval()
    return attention.requires_grad_(False), x


def expected() -> dict[str, torch.Tensor]:
    """All tensors of the example by their names on the page, in plain PyTorch."""
    attention, x = example_attention()
    results = {"step 1: input": x, "step 2: columns": torch.arange(6).view(2, 3)}
    projections = {
        "queries": attention.W_query,
        "keys": attention.W_key,
        "values": attention.W_value,
    }
    for name, linear in projections.items():
        results[f"step 3: W_{'query' if name == 'queries' else name[:-1]}"] = linear.weight.T
        flat = functional.linear(x, linear.weight)
        results[f"step 4: {name}"] = flat
        results[f"step 5: {name}"] = flat.reshape(1, T, H, D)
        results[f"step 6: {name}"] = torch.stack(flat.split(D, dim=-1), dim=1)
    results["step 3: W_out"] = attention.out_proj.weight.T
    q, k, v = (results[f"step 6: {name}"] for name in projections)
    scores = torch.einsum("bhid,bhjd->bhij", q, k)
    future = torch.ones(T, T).triu(1).bool()
    results["step 7: scores"] = scores
    results["step 8: masked"] = scores.masked_fill(future, -torch.inf)
    results["step 8: scaled"] = results["step 8: masked"] / D**0.5
    results["step 8: weights"] = results["step 8: scaled"].softmax(-1)
    results["step 9: context"] = results["step 8: weights"] @ v
    results["step 10: context"] = results["step 9: context"].permute(0, 2, 1, 3)
    merged = torch.cat(list(results["step 9: context"].unbind(1)), dim=-1)
    results["step 11: merged"] = merged
    results["step 11: output"] = functional.linear(
        merged, attention.out_proj.weight, attention.out_proj.bias
    )
    return results


def test_each_step_shows_its_inputs_and_outputs(site: AppTest):
    reference = expected()
    visible = set()
    open_page(site, VIEW)
    for number in range(1, 12):
        site.slider("shapes_step").set_value(number).run()
        assert not site.exception
        for name, panel in drawn_panels(site).items():
            if not name.startswith("step "):
                continue  # The two views of step 6.
            visible.add(name)
            # Float32, computed in a different order.
            np.testing.assert_allclose(panel.values, reference[name], atol=1e-6, rtol=1e-5)
        assert {name for name in reference if name.startswith(f"step {number}:")} <= set(
            drawn_panels(site)
        )
    assert visible == set(reference)
    attention, x = example_attention()
    np.testing.assert_allclose(
        drawn_panels(site)["step 11: output"].values, attention(x), atol=1e-6, rtol=1e-5
    )


def test_operands_give_every_computed_number(site: AppTest):
    """Recompute each number from the terms below its picture."""
    expected_names = {
        "queries": "product", "keys": "product", "values": "product", "scores": "product",
        "masked": "masked", "scaled": "scaled", "weights": "softmax", "context": "product",
        "output": "product",
    }  # fmt: skip
    visible = {}
    open_page(site, VIEW)
    for number in (4, 7, 8, 9, 11):
        site.slider("shapes_step").set_value(number).run()
        panels = drawn_panels(site)
        identities = {panel.panel["identity"]: panel for panel in panels.values()}
        for name, panel in panels.items():
            if not name.startswith(f"step {number}: ") or panel.operands is None:
                continue
            provenance = panel.panel["made"]
            assert set(provenance["sources"]) <= set(identities)
            kind = visible[name.partition(": ")[2]] = provenance["kind"]
            assert provenance["nTerms"] == panel.operands.shape[-2] - (kind == "softmax")
            added = None if panel.added is None else torch.tensor(panel.added)
            values = torch.tensor(panel.values)
            terms_result = result(kind, torch.tensor(panel.operands), added, values)
            torch.testing.assert_close(values, terms_result, atol=1e-6, rtol=1e-5)
    assert visible == expected_names


def test_computed_number_names_its_inputs(site: AppTest):
    """Every input tensor is on the page under the name that the picture uses."""
    open_page(site, VIEW)
    for number in (4, 7, 8, 9, 11):
        site.slider("shapes_step").set_value(number).run()
        panels = drawn_panels(site)
        identities = {panel.panel["identity"]: panel for panel in panels.values()}
        for name, panel in panels.items():
            if not name.startswith(f"step {number}: ") or panel.panel["made"] is None:
                continue
            provenance = panel.panel["made"]
            inputs = re.sub(r"\(\w+\)", "x", provenance["equation"]).split("->")[0].split(",")
            for source, letters in zip(provenance["sources"], inputs, strict=True):
                assert len(letters) == len(identities[source].panel["shape"])


def test_text_gives_the_numbers_of_the_last_token(site: AppTest):
    def page_text() -> str:
        marks = str.maketrans("−", "-", "\u2068\u2069")
        return " ".join(text.value for text in site.text).translate(marks)

    scores = open_step(site, 7)["step 7: scores"]
    row, names = scores.values[0, 0, -1], scores.panel["columns"][0]
    assert f"{row.max():.2f}, for “{names[row.argmax()]}”" in page_text()
    site.slider("shapes_step").set_value(8).run()
    row = drawn_panels(site)["step 8: weights"].values[0, 0, -1]
    inputs = re.findall(r"(\d+)% (?:of its attention )?to “([^”]+)”", page_text())
    assert inputs[0][1] == names[row.argmax()]
    assert inputs == [(f"{row[names.index(name)]:.0%}"[:-1], name) for _, name in inputs]
    site.slider("shapes_step").set_value(9).run()
    assert f"{drawn_panels(site)['step 9: context'].values[0, 0, -1, 0]:.2f}" in page_text()


def test_overview_has_the_lecture_shapes_and_marks_the_step(site: AppTest):
    open_step(site, 8)
    lines = code(site)[0].splitlines()
    assert len(lines) == 11
    for line, (title, shape) in zip(lines, LECTURE["shape_steps"], strict=True):
        assert line.endswith(f"  {shape}")
        assert line.split()[1 if "▶" in line else 0] == title.split()[0]
    assert [i for i, line in enumerate(lines, start=1) if "▶" in line] == [8]
    assert site.text_input("shapes_text").value == LECTURE["sentence"]


def test_layer_overview_has_one_shape_per_line(site: AppTest):
    open_step(site, 5, shapes_of=DECODER, shapes_words="word " * 29 + "end")
    lines = code(site)[0].splitlines()
    at = next(i for i, line in enumerate(lines) if "▶" in line)
    queries, keys = (line.strip().rpartition("  ")[2] for line in lines[at : at + 2])
    assert [queries, keys] == ["(1, 30, 9, 64)", "(1, 30, 3, 64)"]
    assert max(map(len, lines)) <= 45  # A line on a phone fits 45 characters.


def test_numbers_keep_their_identity_across_steps(site: AppTest):
    open_page(site, VIEW)
    values_by_identity: dict[str, dict[int, float]] = {}
    for number in range(4, 12):
        site.slider("shapes_step").set_value(number).run()
        palettes = set()
        for header, _ in drawings(site):
            assert header["colour"] == "identity"
            assert header["link"] == "shapes"
            palettes.add(tuple(header["palette"]))
        assert palettes == {(T, D_OUT + 1)}
        for name, panel in drawn_panels(site).items():
            if panel.cells is None or not name.startswith("step "):
                continue
            what = name.partition(": ")[2].replace("merged", "context")
            now = dict(zip(panel.cells.flat, panel.values.flat, strict=True))
            assert len(now) == panel.values.size  # Every cell has its own identity.
            assert values_by_identity.setdefault(what, now) == now
    assert set(values_by_identity) == {"queries", "keys", "values", "context"}


def test_scores_belong_to_the_query_token_and_head(site: AppTest):
    panels = open_step(site, 9)
    weights, context = panels["step 8: weights"], panels["step 9: context"]
    assert weights.cells is None
    assert weights.groups is not None
    assert context.groups is not None
    for head in range(H):
        for token in range(T):
            (group,) = set(weights.groups[0, head, token])
            assert set(context.groups[0, head, token]) == {group}
    assert len(np.unique(weights.groups)) == H * T


def test_head_rows_are_named_and_column_numbers_are_integers(site: AppTest):
    panels = open_step(site, 5)
    assert panels["step 5: keys"].panel["rows"] == ["head 0", "head 1"]
    assert panels["step 5: keys"].panel["blocks"] == [["The", "cat", "sleeps"]]
    site.slider("shapes_step").set_value(2).run()
    assert drawn_panels(site)["step 2: columns"].values.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert b'"decimals": 0' in site.get("bidi_component")[0].proto.bytes


@pytest.mark.parametrize("kind", [{}, {"shapes_of": ENCODER}, {"shapes_of": DECODER}])
def test_every_step_shows_code_that_ran(site: AppTest, kind: dict[str, str]):
    open_step(site, 1, **kind)
    for number in range(1, 12):
        site.slider("shapes_step").set_value(number).run()
        assert not site.exception
        location, *code_lines = code(site)[1].splitlines()
        file, first = re.findall(r"# (.*?), lines? (\d+)", location)[0]
        # Long paths are shortened to their end, which must match only one file.
        end = file.removeprefix("…")
        (path,) = (
            path
            for folder in ("attention_core", "pages")
            for path in (ROOT / folder).rglob("*.py")
            if f"/{path.relative_to(ROOT)}".endswith(end)
        )
        ran = path.read_text(encoding="utf-8").splitlines()[int(first) - 1]
        # The comments differ because the anchor isn't shown.
        assert code_lines[0].partition("#")[0].strip() == ran.partition("#")[0].strip()


def test_dropout_uses_its_own_seed(site: AppTest):
    panels = open_step(site, 8, shapes_dropout="0.5", shapes_draw="7")
    weights = torch.tensor(panels["step 8: weights"].values)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        dropped = functional.dropout(weights, 0.5)
    np.testing.assert_array_equal(panels["step 8: after dropout"].values, dropped)
    assert 0 < int((dropped == 0).sum()) < dropped.numel()
    site.number_input("shapes_draw").set_value(8).run()
    other = drawn_panels(site)
    np.testing.assert_array_equal(other["step 8: weights"].values, weights)
    assert not np.array_equal(other["step 8: after dropout"].values, dropped)


def test_without_mask_all_scores_are_visible(site: AppTest):
    panels = open_step(site, 8, shapes_causal="false")
    assert "step 8: masked" not in panels
    weights = panels["step 8: weights"].values
    assert (weights > 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)


def test_wrong_view_names_the_token_of_each_row(site: AppTest):
    panels = open_step(site, 6)
    attention, x = example_attention()
    flat = attention.W_query(x)
    wrong = panels["queries: view(B, H, T, D) only"]
    np.testing.assert_allclose(wrong.values, flat.view(1, H, T, D), atol=1e-6, rtol=1e-5)
    right = panels["queries: view, then transpose(1, 2)"]
    np.testing.assert_array_equal(right.values, panels["step 6: queries"].values)
    assert wrong.cells is not None
    assert right.cells is not None
    assert dict(zip(wrong.cells.flat, wrong.values.flat, strict=True)) == dict(
        zip(right.cells.flat, right.values.flat, strict=True)
    )
    # Memory contains six pieces, two per token. Head 0 gets The The cat, and head 1 gets the rest.
    tokens = ["The", "The", "cat", "cat", "sleeps", "sleeps"]
    (table,) = [t for t in plain_tables(site) if "expected token" in t]
    assert table["actual token"].tolist() == tokens
    assert table["expected token"].tolist() == ["The", "cat", "sleeps"] * 2
    assert table["mixed up"].tolist() == ["no", "yes", "yes", "yes", "yes", "no"]
    assert {tuple(index[:3]) for index in wrong.panel["mark"]} == {
        (0, 0, 1),
        (0, 0, 2),
        (0, 1, 0),
        (0, 1, 1),
    }


def test_invalid_head_count_is_explained(site: AppTest):
    open_page(site, VIEW, shapes_step="6")
    site.slider("shapes_heads").set_value(4).run()
    assert not site.exception
    (message,) = messages(site)
    for numbers in ("(6)", "(4)", "1, 2, 3 or 6", "4, 8, 12 or 16"):
        assert numbers in message
    assert site.slider("shapes_d_out").value == 6
    assert drawn_panels(site) == {}
    site.slider("shapes_d_out").set_value(8).run()
    assert messages(site) == []
    assert drawn_panels(site)["step 6: queries"].values.shape == (1, 4, 3, 2)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"shapes_context": "2"}, ("3", "2")),
        ({"shapes_text": "a " * 13}, ("13", "12")),
        ({"shapes_second": "one dog barks loudly"}, ("3", "4")),
        ({"shapes_of": ENCODER, "shapes_words": "x " * 200}, ("128",)),
        ({"shapes_of": DECODER, "shapes_words": ""}, ()),
    ],
)
def test_invalid_input_shows_message(
    site: AppTest, query: dict[str, str], numbers: tuple[str, ...]
):
    open_page(site, VIEW, **query)
    assert not site.exception
    (message,) = messages(site)
    assert all(number in message for number in numbers)
    for key, value in query.items():
        boxes = [box for box in site.text_input if box.key == key]
        assert all(box.value == value for box in boxes)


def test_batch_of_two_shows_the_words_of_both_texts(site: AppTest):
    panels = open_step(site, 6, shapes_second="A dog barks")
    panel = panels["step 6: keys"]
    assert panel.values.shape == (2, H, T, D)
    assert panel.panel["rows"] == [["The", "cat", "sleeps"], ["A", "dog", "barks"]]
    x = torch.randn(6, D_IN, generator=torch.Generator().manual_seed(123)).view(2, T, D_IN)
    flat = example_attention()[0].W_key(x)
    np.testing.assert_allclose(
        panel.values, flat.view(2, T, H, D).transpose(1, 2), atol=1e-6, rtol=1e-5
    )


def test_controls_at_their_limits(site: AppTest):
    twelve = " ".join("abcdefghijkl")
    low = {"shapes_d_in": "1", "shapes_d_out": "1", "shapes_heads": "1", "shapes_context": "1",
           "shapes_text": "one", "shapes_dropout": "0.9"}  # fmt: skip
    high = {"shapes_d_in": "12", "shapes_d_out": "16", "shapes_heads": "8", "shapes_context": "12",
            "shapes_text": twelve, "shapes_second": twelve, "shapes_seed": "99999"}  # fmt: skip
    shapes = {
        1: ("input", (2, 12, 12)),
        2: ("columns", (8, 2)),
        4: ("keys", (2, 12, 16)),
        6: ("keys", (2, 8, 12, 2)),
        8: ("weights", (2, 8, 12, 12)),
        11: ("output", (2, 12, 16)),
    }
    other = AppTest.from_file(FRAME, default_timeout=60)
    for ends, query in ((site, low), (other, high)):
        open_step(ends, 1, **query)
        for number, (name, shape) in shapes.items():
            ends.slider("shapes_step").set_value(number).run()
            assert not ends.exception
            assert messages(ends) == []
            tensor = drawn_panels(ends)[f"step {number}: {name}"].values
            assert tensor.shape == (shape if ends is other else (1,) * tensor.ndim)


@pytest.mark.parametrize(
    ("name", "layer", "first", "kv_heads"), [(ENCODER, 2, 9, [9, 10, 11]), (DECODER, 7, 2, [0, 1])]
)
def test_real_layer_matches_its_record(
    site: AppTest, name: str, layer: int, first: int, kv_heads: list[int]
):
    query = {"shapes_of": name, "shapes_layer": str(layer), "shapes_head": str(first)}
    model = bundled_model(name)
    tokens = model.tokenizer.encode(WORDS)
    with torch.inference_mode():
        record = model.core(torch.tensor([tokens.ids]), record=True).records[layer]
    assert record.output is not None
    heads, t, d = slice(first, first + 3), slice(0, 6), slice(0, 8)
    reference = {
        7: ("scores", record.scores[:, heads, t, t]),
        8: ("weights", record.weights[:, heads, t, t]),
        9: ("context", record.context[:, heads, t, d]),
        11: ("output", record.output[:, t, d]),
    }
    panels = open_step(site, 6, **query)
    suffix = ", rotated" if name == DECODER else ""
    np.testing.assert_array_equal(
        panels[f"step 6: queries{suffix}"].values, record.q[:, heads, t, d]
    )
    np.testing.assert_array_equal(
        panels[f"step 6: keys{suffix}"].values, record.k[:, kv_heads, t, d]
    )
    np.testing.assert_array_equal(panels["step 6: values"].values, record.v[:, kv_heads, t, d])
    assert panels["step 6: values"].panel["positions"][1] == kv_heads
    assert panels["step 6: queries"].panel["rows"] == [list(tokens.labels[:6])]
    for number, (tensor, values) in reference.items():
        site.slider("shapes_step").set_value(number).run()
        assert not site.exception
        panel = drawn_panels(site)[f"step {number}: {tensor}"]
        np.testing.assert_array_equal(panel.values, values)
    _, n_tokens, width = record.output.shape
    assert re.findall(r"\d+", panel.panel["shapeText"]) == [
        "1", str(n_tokens), str(width), "1", "6", "8"
    ]  # fmt: skip
    (window,) = [e.value for e in site.text if "Shown here" in e.value]
    assert f"0 to 5 of {len(tokens.ids)}" in window
    assert f"{first} to {first + 2} of {model.core.config.n_heads}" in window


def test_window_identities_are_consistent(site: AppTest):
    panels = open_step(site, 6, shapes_of=DECODER, shapes_head="3")
    queries, keys = panels["step 6: queries"], panels["step 6: keys"]
    before = panels["step 5: queries"]
    assert queries.cells is not None
    assert keys.cells is not None
    assert before.cells is not None
    assert sorted(queries.cells.flat) == sorted(before.cells.flat)
    assert len(set(queries.cells.flat)) == 3 * 6 * 8
    assert not set(queries.cells.flat) & set(keys.cells.flat)
    # The ids of a token are consecutive: 3 query heads, 1 key head and the token itself.
    for token in range(6):
        width = 3 * 8 + 8 + 1
        assert set(queries.cells[0, :, token].flat) < set(range(token * width, (token + 1) * width))
    # In the wrong view, cells of tokens and heads that aren't drawn have no identity.
    wrong = panels["queries: view(B, H, T, D) only"]
    assert wrong.cells is not None
    assert -1 in wrong.cells
    assert set(wrong.cells.flat) - {-1} <= set(queries.cells.flat)


def test_missing_layer_falls_back_to_the_last(site: AppTest):
    open_step(site, 9, shapes_of=DECODER, shapes_layer="29")
    site.selectbox("shapes_of").set_value(ENCODER).run()
    assert not site.exception
    assert site.select_slider("shapes_layer").value == 5


def test_table_matches_the_drawing(site: AppTest):
    panels = open_step(site, 9, shapes_of=DECODER, shapes_head="4")
    context = panels["step 9: context"]
    table = site.dataframe[-1].value
    assert list(table.columns) == ["tensor", "batch", "head", "token", "column", "value"]
    np.testing.assert_array_equal(table["value"], context.values.ravel())
    assert sorted(set(table["head"])) == [4, 5, 6]


def test_playback_and_step_buttons(site: AppTest):
    open_step(site, 11)
    site.button("shapes_step_play").click().run()
    # After the last step, playback restarts from the first.
    assert site.slider("shapes_step").value == 1
    site.slider("shapes_step").set_value(10).run()
    assert site.button("shapes_step_play").label == "Play"
    buttons = [site.button(f"shapes_step_{name}") for name in ("previous", "next")]
    assert [button.proto.shortcut for button in buttons] == ["left", "right"]
    site.button("shapes_step_play").click().run()
    site.button("shapes_step_next").click().run()
    assert site.slider("shapes_step").value == 11
    assert site.button("shapes_step_play").label == "Play"  # Moving by one step stops playback.
    assert site.button("shapes_step_next").disabled
    site.button("shapes_step_previous").click().run()
    assert site.slider("shapes_step").value == 10
    site.slider("shapes_step").set_value(1).run()
    assert site.button("shapes_step_previous").disabled


def test_quiz_answers_match_arithmetic():
    first, second, third = questions()
    assert first.right == str((2, 4, 5, 12 // 4))
    # Memory contains two pieces per token. Head 1 starts at piece 4, the first one of token 2.
    assert second.right == "starts"
    assert third.right == str(1600 // 25)
