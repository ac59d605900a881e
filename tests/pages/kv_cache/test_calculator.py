"""The Calculator page: plain arithmetic, the lecture's examples, invalid shapes."""

import math
import re

import pytest
from streamlit.testing.v1 import AppTest

from pages.kv_cache.calculator.numbers import PLAIN, REAL
from tests.helpers.apptest import code, messages, open_whole_page
from tests.helpers.charts import drawn_charts

VIEW = "pages/kv_cache/calculator/page.py"


def formula(site: AppTest) -> str:
    return next(text for text in code(site) if "layers ×" in text)


def table(site: AppTest) -> dict[str, str]:
    """The page's first table: quantity and value."""
    frame = site.table[0].value
    return dict(zip(frame["Quantity"], frame["Value"], strict=True))


def preset(site: AppTest, name: str) -> AppTest:
    return site.menu_button("calculator_example").click(name).run()


def test_numbers_follow_the_shapes(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    # Llama-3.1 8B: 32 layers, 8 key/value heads of 128, 16 bits. 8 sequences of 32,768 tokens.
    cache = 32 * 8 * 128 * 2 * 2 * 32_768 * 8
    assert site.subheader[0].value == f"{cache / 1e9:.4g} GB of cache"
    left, right = formula(site).split(" = ")
    factors = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", left)]
    assert math.prod(factors) == cache
    assert right == f"{cache:,} bytes"
    figures = table(site)
    assert figures["Each additional token of a sequence"] == "131,072 bytes"
    assert (
        figures["With plain multi-head attention"] == f"{4 * cache / 1e9:.4g} GB, 4 times the cache"
    )
    free = 80e9 - 2 * 8_029_995_008
    assert figures["Sequences of 32,768 tokens that fit"] == str(int(free // (cache // 8)))
    assert figures["Longest context for 8 sequences"] == f"{int(free // (8 * 131_072)):,} tokens"
    frame = site.dataframe[0].value.set_index("model")
    assert len(frame) >= 12
    assert frame.loc["Llama-3.1 8B", "cache, bytes"] == cache
    assert frame.loc["DeepSeek-V3", "cache, bytes"] == 61 * 576 * 2 * 32_768 * 8
    assert frame.loc["Mistral 7B v0.1", "cache, bytes"] == cache // 8  # Its window is 4,096 tokens.
    assert frame["source"].str.startswith("https://").all()
    assert "0.64" in next(m.value for m in site.markdown if "power" in m.value)


def test_lecture_examples(site: AppTest):
    open_whole_page(site, VIEW)
    preset(site, "Lecture: 30B")
    assert formula(site).endswith("= 180,388,626,432 bytes")
    preset(site, "Lecture: DeepSeek")
    assert formula(site).endswith("= 399,769,600,000 bytes")
    assert any("**7.027 GB** here: 57 times less" in m.value for m in site.markdown)
    preset(site, "DeepSeek with MLA")
    assert formula(site).endswith("= 7,027,200,000 bytes")
    assert not site.exception


def test_full_windows_and_too_little_memory(site: AppTest):
    open_whole_page(site, VIEW, calculator_model="Gemma-3 27B", calculator_memory="24")
    total = (10 * 32_768 + 52 * 1024) * 16 * 128 * 2 * 2 * 8
    assert f"{total:,} bytes" in formula(site)
    figures = table(site)
    assert figures["Each additional token of a sequence"] == f"{10 * 16 * 128 * 2 * 2:,} bytes"
    assert figures["Left of 24 GB after the weights"].startswith("none: 30.0")
    assert figures["Sequences of 32,768 tokens that fit"] == "0"
    preset(site, "Mistral's window")
    assert table(site)["Longest context for 8 sequences"].startswith("unlimited")
    assert not site.exception


def test_custom_shapes_from_a_link(site: AppTest):
    own = {"model": "My own shapes", "n_layers": "3", "n_heads": "10", "n_kv_heads": "5",
           "head_size": "7", "batch": "2", "context": "128", "cache": "float32"}  # fmt: skip
    open_whole_page(site, VIEW, **{f"calculator_{name}": value for name, value in own.items()})
    assert formula(site).endswith(f"= {3 * 2 * 128 * 5 * 7 * 2 * 4:,} bytes")
    site.number_input("calculator_n_kv_heads").set_value(4.0).run()
    [message] = messages(site)
    assert "divides 10" in message
    assert not site.exception
    assert site.number_input("calculator_n_kv_heads").value == 4


def test_charts_match_the_tables(site: AppTest):
    open_whole_page(site, VIEW, calculator_model="DeepSeek-V2")
    by_context, by_model, by_family = drawn_charts(site)
    lines = by_context.layers[0]
    assert set(lines["what"]) == {REAL, PLAIN}
    at = lines[lines["tokens"] == 32_768].set_index("what")["GB"]
    assert at[REAL] == pytest.approx(60 * 576 * 2 * 32_768 * 8 / 1e9)
    assert at[PLAIN] == pytest.approx(60 * 2 * 128 * 128 * 2 * 32_768 * 8 / 1e9)
    sizes = by_model.layers[1]
    real = sizes[sizes["what"] == REAL].set_index("model")["GB"]
    frame = site.dataframe[0].value.set_index("model")["cache, bytes"] / 1e9
    assert real.to_dict() == pytest.approx(frame.to_dict())
    caches = by_family.rows[by_family.rows["what"] == "KV cache"]["GB"]
    assert caches.iloc[-1] == pytest.approx(96 * 2 * 12_288 * 2 * 2048 * 8 / 1e9)
