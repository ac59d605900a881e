"""Every page through AppTest: its numbers, bad input, links, and a machine without weights."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import pretrained
from tests.app.conftest import ROOT, VIEWS, messages, open_page
from tests.models import bundled
from ui import attention, controls, models, source
from ui.limits import MAX_TEXT_CHARACTERS
from ui.linked import says
from ui.messages import MAX_CHARACTERS, as_text

SIDE = "views/compare/side_by_side.py"
HOME = "views/start/home.py"
GENERATE = "views/generate/generate.py"
MODELS = "views/models/models.py"


def maps(site: AppTest) -> list[tuple[dict[str, Any], np.ndarray]]:
    """Header and values of each heatmap on the page, as the browser receives them."""
    found = []
    for element in site.get("bidi_component"):
        data = element.proto.bytes
        length = int.from_bytes(data[:4], "little")
        header = json.loads(data[4 : 4 + length])
        values = np.frombuffer(data, "<f4", offset=4 + length)
        found.append((header, values.reshape(header["rows"], header["columns"])))
    return found


def weights(name: str, text: str, layer: int, head: int) -> np.ndarray:
    """The same weights without any of the site's code."""
    model = bundled(name)
    ids = torch.tensor([model.tokenizer.encode(text).ids])
    with torch.inference_mode():
        return model.core(ids, record=True).records[layer].weights[0, head].numpy()


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_opens(site: AppTest, view: str):
    open_page(site, view)
    assert not site.exception
    assert not messages(site)
    assert site.title[0].value


@pytest.mark.parametrize("view", [view for view in VIEWS if "/learn/" not in view])
@pytest.mark.usefixtures("no_weights")
def test_without_weights_every_page_says_how_to_get_some(site: AppTest, view: str):
    open_page(site, view)
    assert not site.exception
    assert any("make run" in message for message in messages(site))


def test_home_shows_the_head_of_the_sentence(site: AppTest):
    open_page(site, HOME)
    ((header, values),) = maps(site)
    expected = weights("all-minilm-l6-v2", controls.ANIMAL, 3, 1)
    np.testing.assert_array_equal(values, expected)
    assert header["labels"][0] == "[CLS]"
    assert header["largest"] == pytest.approx(float(expected.max()))
    # the labels stand between marks that keep right-to-left text in its place
    sentence = re.sub("[\u2068\u2069]", "", site.text[0].value)
    assert "“it” gives 0.640 of its attention to “animal”" in sentence


def test_side_by_side_shows_two_heads_on_one_scale(site: AppTest):
    text = "Two kettles sing before one lamp"
    open_page(site, SIDE)
    site.text_area("side_text").set_value(text).run()
    site.select_slider("side_a_layer").set_value(5)
    site.select_slider("side_a_head").set_value(11)
    site.select_slider("side_b_layer").set_value(29)
    site.select_slider("side_b_head").set_value(8).run()
    assert not site.exception
    (left, first), (right, second) = maps(site)
    np.testing.assert_array_equal(first, weights("all-minilm-l6-v2", text, 5, 11))
    np.testing.assert_array_equal(second, weights("smollm2-135m-instruct", text, 29, 8))
    assert not left["causal"]
    assert right["causal"]
    assert left["largest"] == right["largest"] == pytest.approx(max(first.max(), second.max()))
    site.selectbox("side_colours").set_value(controls.WHOLE).run()
    assert [header["largest"] for header, _ in maps(site)] == [1.0, 1.0]


def test_long_texts_get_colours_that_show_small_weights(site: AppTest):
    open_page(site, SIDE)
    assert [header["squareRoot"] for header, _ in maps(site)] == [False, False]
    site.text_area("side_text").set_value("word " * 60).run()
    assert [header["squareRoot"] for header, _ in maps(site)] == [True, True]
    site.selectbox("side_colours").set_value(controls.LINEAR).run()
    assert [header["squareRoot"] for header, _ in maps(site)] == [False, False]
    site.text_area("side_text").set_value("word").run()
    site.selectbox("side_colours").set_value(controls.SQUARE_ROOT).run()
    assert [header["squareRoot"] for header, _ in maps(site)] == [True, True]


def test_one_model_that_fails_leaves_the_other_picture(
    site: AppTest, monkeypatch: pytest.MonkeyPatch
):
    original = models.get

    def get(name: str) -> pretrained.Pretrained:
        if name == "all-minilm-l6-v2":
            raise OSError("![x](http://example.invalid/x.png) is damaged")
        return original(name)

    monkeypatch.setattr(models, "get", get)
    open_page(site, SIDE, side_text="A sentence that no other test runs")
    ((header, _),) = maps(site)
    assert header["title"] == "SmolLM2 135M Instruct, layer 3, head 1"
    message = site.warning[0].value
    assert message.startswith("MiniLM L6")
    assert "![x](" not in message
    assert "://" not in message


def test_the_table_is_the_picture(site: AppTest):
    open_page(site, SIDE)
    for (_, values), table in zip(maps(site), site.dataframe, strict=True):
        frame = table.value
        assert (frame["weight"].diff().dropna() <= 0).all()
        read = values[frame["query position"], frame["key position"]]
        np.testing.assert_array_equal(read, frame["weight"])
    causal = site.dataframe[1].value
    assert (causal["key position"] <= causal["query position"]).all()


def test_the_same_model_on_both_sides(site: AppTest):
    open_page(site, SIDE)
    site.selectbox("side_b_model").set_value("all-minilm-l6-v2").run()
    assert not site.exception
    assert [header["causal"] for header, _ in maps(site)] == [False, False]


def test_a_layer_that_the_new_model_lacks_becomes_its_last(site: AppTest):
    open_page(site, SIDE)
    site.select_slider("side_b_layer").set_value(29).run()
    site.selectbox("side_b_model").set_value("all-minilm-l6-v2").run()
    assert not site.exception
    assert site.select_slider("side_b_layer").value == 5
    assert maps(site)[1][0]["title"].endswith("layer 5, head 1")


def test_presets_fill_the_box(site: AppTest):
    open_page(site, SIDE)
    for name, sentence in controls.SENTENCES.items():
        site.button_group("side_text_preset").set_value(name).run()
        assert site.text_area("side_text").value == sentence
        assert not site.exception
        assert site.button_group("side_text_preset").value is None


def test_a_text_over_the_limit_says_by_how_much_and_stays(site: AppTest):
    text = "word " * 270
    open_page(site, SIDE)
    site.text_area("side_text").set_value(text).run()
    assert not site.exception
    # 270 words and [CLS], [SEP]; 16 tokens over 256
    assert any("272 tokens long, 16 over the limit of 256" in m for m in messages(site))
    assert site.text_area("side_text").value == text


@pytest.mark.parametrize("view", [HOME, SIDE])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t ",
        "<img src=x onerror=alert(1)> **bold** ![i](http://example.invalid/x.png)",
        "naïve 👩‍👧 日本語 \x00 \u202e rtl",
        "a" * MAX_TEXT_CHARACTERS,
        "[MASK] <|im_end|> [SEP]",
    ],
)
def test_hostile_and_empty_text(site: AppTest, view: str, text: str):
    key = "home_text" if view == HOME else "side_text"
    open_page(site, view)
    site.text_area(key).set_value(text).run()
    assert not site.exception
    assert maps(site) or messages(site)
    for element in site.markdown:
        assert "onerror" not in element.value
        assert "example.invalid" not in element.value


def test_a_decoder_has_nothing_to_say_about_no_text(site: AppTest):
    open_page(site, SIDE)
    site.text_area("side_text").set_value("").run()
    assert any("type a word or more" in m for m in messages(site))


def test_a_link_restores_the_view(site: AppTest):
    open_page(
        site, SIDE, side_text="A linked sentence", side_a_layer="2", side_a_head="7",
        side_b_model="all-minilm-l6-v2",
    )  # fmt: skip
    assert not site.exception
    assert not site.toast
    assert site.text_area("side_text").value == "A linked sentence"
    titles = [header["title"] for header, _ in maps(site)]
    assert titles[0].endswith("layer 2, head 7")
    assert all(title.startswith("MiniLM") for title in titles)


def test_nonsense_in_a_link_falls_back(site: AppTest):
    open_page(
        site, SIDE, side_a_layer="99", side_a_head="x", side_a_model="../../etc/passwd",
        side_colours="maybe", side_b_layer="4",
    )  # fmt: skip
    assert not site.exception
    titles = [header["title"] for header, _ in maps(site)]
    assert titles[0] == "MiniLM L6 (all-MiniLM-L6-v2), layer 3, head 1"
    assert titles[1] == "SmolLM2 135M Instruct, layer 4, head 1"
    labels = [re.search("“(.+)”", toast.value).group(1) for toast in site.toast]  # type: ignore[union-attr]
    assert labels == ["Model", "Layer", "Head", "Colours"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("nonsense", ["1e400", "-1", "../../etc/<b>passwd</b>"])
def test_nonsense_everywhere_in_a_link(site: AppTest, view: str, nonsense: str):
    """Every parameter of the page at once; text boxes may take it, no page may fail."""
    open_page(site, view)
    kinds = ("slider", "select_slider", "number_input", "selectbox", "toggle", "radio",
             "text_input", "text_area", "button_group")  # fmt: skip
    keys = [widget.key for kind in kinds for widget in site.get(kind) if widget.key]
    linked = [key for key in keys if "_quiz_" not in key]
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    open_page(again, view, **dict.fromkeys(linked, nonsense))
    assert not again.exception
    assert again.title[0].value == site.title[0].value


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
def test_what_an_address_says(asked: str, value: object, expected: bool):
    assert says(asked, value) is expected


def test_runs_are_shared_and_read_only():
    first = attention.run("all-minilm-l6-v2", "shared")
    assert attention.run("all-minilm-l6-v2", "shared") is first
    with pytest.raises(ValueError, match="read-only"):
        first.weights[0, 0, 0, 0] = 1


def test_models_page_refuses_a_hostile_hub_id(site: AppTest):
    open_page(site, MODELS)
    site.selectbox("models_download").set_value("Another model, by its hub id").run()
    site.text_input("models_hub_id").set_value("![x](http://example.invalid/x.png)").run()
    site.button("models_start").click().run()
    assert not site.exception
    message = site.warning[0].value
    assert "no hub name" in message
    assert "![x](" not in message
    assert "://" not in message


def test_messages_are_text():
    hostile = "![x](http://a.example/x.png) **b** `c` $d$ :red[e] <f> www.a.example\n# g"
    shown = as_text(hostile)
    assert re.search(r"(?<!\\)[!*`$<\[\]()#:]", shown) is None
    assert "\n" not in shown
    assert "http\\:\u200b" in shown  # broken up, so that it does not become a link
    assert "www\u200b" in shown
    assert len(as_text("x" * 10_000)) == MAX_CHARACTERS


def test_opening_the_pages_loads_no_torch():
    """What a page shows first, its code included, must not wait for torch."""
    code = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"for view in ({GENERATE!r}, {MODELS!r}):\n"
        "    site = AppTest.from_file(view, default_timeout=60).run()\n"
        "    assert site.title[0].value and not site.exception\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={**os.environ, "ATTENTION_LAB_WARMUP": "off", "HF_HUB_CACHE": "/nonexistent"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_the_code_shown_is_the_code_that_runs():
    import inspect

    from attention_core import attend

    shown = source.read("attention_core/attend.py", "attend")
    lines, first = inspect.getsourcelines(attend)
    assert shown.text == "".join(lines).rstrip("\n")
    assert shown.first_line == first
    method = source.read("attention_core/cache.py", "KVCache.update")
    assert method.text.lstrip().startswith("def update(")
    with pytest.raises(LookupError, match=r"cache\.py does not define KVCache\.nothing"):
        source.read("attention_core/cache.py", "KVCache.nothing")


def test_a_model_that_cannot_be_loaded_does_not_stop_the_warm_up(
    monkeypatch: pytest.MonkeyPatch,
):
    asked = []

    def get(name: str) -> None:
        asked.append(name)
        raise OSError("damaged")

    monkeypatch.setattr(models, "get", get)
    models.warm_up().join(60)
    assert asked == ["all-minilm-l6-v2", "smollm2-135m-instruct"]


def test_models_page_without_a_network(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    # a closed port of this machine: refused at once, as without a network
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    open_page(site, MODELS)
    site.button("models_start").click().run()
    assert not site.exception
    assert any("does not answer" in m for m in messages(site))


def test_downloads_can_be_switched_off(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTENTION_LAB_DOWNLOADS", "off")
    open_page(site, MODELS)
    assert any("switched off" in element.value for element in site.info)
    assert not site.button
