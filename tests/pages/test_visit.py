"""Choices carry over to other pages, or the page explains why it can't use them."""

import pytest
from streamlit.testing.v1 import AppTest

from serving import runs
from serving.heads import first_head, strongest_tokens
from tests.helpers.apptest import open_page
from tests.helpers.bundled_models import DECODER, ENCODER, attention
from ui.text.formatting import percent

pytestmark = pytest.mark.usefixtures("bundled_weights")

TEXT = "Two cats sat on the warm mat while it rained"
SHAPES = "pages/learn/shapes/page.py"


def go(site: AppTest, page: str, **address: str) -> AppTest:
    """Open another page in the same visit, which clears the address."""
    site.query_params.clear()
    open_page(site, f"pages/{page}/page.py", **address)
    assert not site.exception
    assert not site.toast
    return site


def pair(site: AppTest, prefix: str) -> tuple[int, int]:
    query, key = (site.select_slider(f"{prefix}_{name}").value for name in ("query", "key"))
    return query, key


def words(site: AppTest) -> list[str]:
    return [site.selectbox(f"word_pairs_{name}").value for name in ("query", "a", "b")]


def test_token_pair_carries_over_by_its_words(site: AppTest):
    go(site, "compare/heads", heads_text=TEXT)
    site.select_slider("heads_query").set_value(9).run()  # The word "it".
    site.select_slider("heads_key").set_value(2).run()  # The word "cats".
    assert words(go(site, "compare/word_pairs"))[:2] == ["it", "cats"]
    site.selectbox("word_pairs_a").set_value("mat").run()
    site.selectbox("word_pairs_model").set_value(DECODER).run()
    go(site, "compare/side_by_side")
    assert site.selectbox("side_by_side_a_model").value == DECODER
    assert pair(site, "side_by_side") == (8, 6)  # This tokenizer adds no [CLS].
    go(site, "compare/heads")
    assert pair(site, "heads") == (8, 6)
    site.selectbox("heads_model").set_value(ENCODER).run()
    assert pair(site, "heads") == (9, 7)


def test_word_b_differs_from_prefilled_pair(site: AppTest):
    # "it" -> "street", which is word B in the lectures.
    go(site, "compare/heads", heads_query="10", heads_key="8")
    assert words(go(site, "compare/word_pairs")) == ["it", "street", "animal"]


def test_new_sentence_uses_its_own_strongest_pair(site: AppTest):
    go(site, "compare/heads")
    site.text_input("heads_text").set_value(TEXT).run()
    run = runs.run(ENCODER, TEXT)
    first = first_head(run)
    assert pair(site, "heads") == strongest_tokens(run, first.layer, first.head)


def test_side_by_side_opens_the_head_with_the_largest_weight(site: AppTest):
    names = {"a_model": ENCODER, "a_layer": "3", "a_head": "1", "b_model": DECODER}
    names |= {"b_layer": "3", "b_head": "1"}
    names = {f"side_by_side_{name}": value for name, value in names.items()}
    go(site, "compare/side_by_side", **names)
    site.button("side_by_side_find").click().run()
    layer, head = (site.select_slider(f"side_by_side_b_{name}").value for name in ("layer", "head"))
    sentence = site.text_input("side_by_side_text").value
    best = attention(DECODER, sentence, layer, head)[0][8, 1]
    for other in range(9):  # The search covers only the open layer.
        assert attention(DECODER, sentence, layer, other)[0][8, 1] <= best
    assert (
        site.button("side_by_side_find").label
        == f"Open strongest head: L{layer}H{head}, {percent(float(best))}"
    )
    assert site.button("side_by_side_find").disabled


def test_shapes_opens_on_the_current_text(site: AppTest):
    go(site, "learn/shapes")
    assert site.selectbox("shapes_of").value == "the example"
    go(site, "start/one_pass")
    site.selectbox("one_pass_model").set_value(ENCODER).run()
    site.text_input("one_pass_text").set_value(TEXT).run()
    site.select_slider("one_pass_layer").set_value(3).run()
    site.select_slider("one_pass_head").set_value(11).run()
    go(site, "learn/shapes")
    assert site.selectbox("shapes_of").value == ENCODER
    assert site.text_input("shapes_words").value == TEXT
    layer_and_head = [site.select_slider(f"shapes_{name}").value for name in ("layer", "head")]
    assert layer_and_head == [3, 11]
    assert any("layer 3: tokens 0 to 5 of 12; heads 9 to 11 of 12" in t.value for t in site.text)
    site.button("shapes_back").click().run()
    assert site.text_input("shapes_text").value == "The cat sleeps"
    go(site, "start/home")
    assert go(site, "learn/shapes").selectbox("shapes_of").value == "the example"
    # A link to the example opens it, regardless of the visit.
    go(site, "start/home", home_text=TEXT)
    go(site, "learn/shapes", shapes_text="A dog barks")
    assert site.selectbox("shapes_of").value == "the example"
    assert site.text_input("shapes_text").value == "A dog barks"


def test_block_uses_the_current_model(site: AppTest):
    go(site, "compare/heads", heads_model=DECODER, heads_layer="13")
    go(site, "learn/block")
    assert site.selectbox("block_layer_of").value == DECODER
    assert site.select_slider("block_layer").value == 13


def test_last_disabled_head_carries_over(site: AppTest):
    go(site, "compare/ablate")
    site.multiselect("ablate_heads").set_value(["L1H5", "L29H1"]).run()
    go(site, "compare/heads", heads_model=DECODER)
    assert [site.select_slider(f"heads_{name}").value for name in ("layer", "head")] == [29, 1]
    assert go(site, "compare/ablate").multiselect("ablate_heads").value == ["L1H5", "L29H1"]


def test_page_without_text_input_explains_why(site: AppTest):
    def mentions_own_sentence() -> bool:
        page = go(site, "learn/ladder")
        return any("You can use your own sentence" in element.value for element in page.markdown)

    assert not mentions_own_sentence()
    go(site, "start/home", home_text=TEXT)
    assert mentions_own_sentence()
