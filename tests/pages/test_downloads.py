"""Downloads: files, snippets and links, compared with what the pages show."""

import gc
import urllib.parse
import weakref

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.compare.ablate import downloads as ablation
from pages.compare.ablate import effect as effects
from pages.compare.ablate import pickers, ranking, runs
from pages.compare.side_by_side import comparison
from pages.compare.side_by_side import downloads as side_by_side_files
from pages.compare.word_pairs import downloads as word_pairs_files
from pages.compare.word_pairs import search
from serving import models
from serving import runs as attention
from tests.helpers.apptest import FRAME, SIDE, code, open_page, open_whole_page
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.small_bert import save_bert
from tests.helpers.snippets import run_snippet
from ui.widgets.head_choice import HeadChoice

HOSTILE = 'Kettles sing: \'one\' \\ """ {layer} </script><img src=x> été 👍🏽 \u202e lamps'


def heads(*names: tuple[str, int, int]) -> tuple[HeadChoice, ...]:
    entries = {entry.spec.name: entry for entry in models.available()}
    return tuple(HeadChoice(entries[name], layer, head) for name, layer, head in names)


@pytest.mark.parametrize(
    ("view", "renormalise"), [(comparison.TOKENS, True), (comparison.WORDS, False)]
)
def test_side_by_side(view: str, renormalise: bool, capsys: pytest.CaptureFixture[str]):
    both = attention.run(ENCODER, HOSTILE), attention.run(DECODER, HOSTILE)
    first, second = heads((ENCODER, 2, 5), (DECODER, 17, 4))
    comparison_view = comparison.compare(both, (first, second), view, renormalise)
    code = side_by_side_files.snippet(both, (first, second), comparison_view, view, renormalise)
    names, printed = run_snippet(code, capsys)
    np.testing.assert_allclose(names["signed"], comparison_view.difference, atol=1e-5)
    largest = comparison_view.table.iloc[0]
    message = [
        float(one) for one in printed.splitlines()[-1].replace("tensor(", "").split(")")[:-1]
    ]
    assert message == pytest.approx(list(largest[["left", "right", "left minus right"]]), abs=1e-4)
    stored = side_by_side_files.arrays(both, (first, second), comparison_view)
    np.testing.assert_array_equal(stored["difference"], comparison_view.difference)
    np.testing.assert_array_equal(stored["right_weights"], both[1].weights[17, 4])
    assert stored["left_as_drawn"].dtype == np.float32
    assert len(stored["left_labels_as_drawn"]) == len(stored["left_as_drawn"])


def run_search(text: str) -> tuple[attention.Run, search.Search]:
    ran = attention.run(ENCODER, text)
    units = search.units(ran.tokens)
    last = len(units) - 2  # The position before [SEP].
    return ran, search.search(ran, units, last, 1, 2)


def test_word_pairs(capsys: pytest.CaptureFixture[str]):
    ran, result = run_search(HOSTILE)
    names, printed = run_snippet(word_pairs_files.snippet(ran, result), capsys)
    first, second = printed.splitlines()
    assert tuple(map(int, first.split()[:2])) == result.best
    assert float(first.split()[2]) == pytest.approx(float(result.weights.max()), abs=1e-5)
    assert float(second) == pytest.approx(float(result.other_weights.max()), abs=1e-5)
    stored = word_pairs_files.arrays(ran, result)
    expected = ran.weights[:, :, stored["query_tokens"]].mean(2)[..., stored["a_tokens"]].sum(-1)
    np.testing.assert_allclose(stored["weights_on_a"], expected, atol=1e-6)


@pytest.mark.parametrize("kind", runs.KINDS)
@pytest.mark.parametrize("name", [ENCODER, DECODER, "tiny-bert"])
def test_ablation(name: str, kind: str, capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch):
    if name == "tiny-bert":  # This model has a masked-word head.
        save_bert(tmp_path / name)
        monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    text = "the old lamp sings ." if name == "tiny-bert" else HOSTILE
    question = runs.question(name, text, "3")
    off = ["L0H1", "L1H2"]
    effect = runs.effect(question, off, kind)
    names, _ = run_snippet(ablation.snippet(question, off, kind), capsys)
    size, second = names["effect"].tolist()
    assert size == pytest.approx(effect.size, rel=1e-5, abs=1e-5)
    # A logit of 20 differs by 3e-5 from double precision, and this is a difference of two.
    assert second == pytest.approx(effect.second, abs=1e-4)
    none, _ = run_snippet(ablation.snippet(question, [], kind), capsys)
    assert none["effect"].abs().max() < 1e-5
    ranked = ranking.Ranking(np.ones((2, 3), "f4"), np.zeros((2, 3), "f4"))
    stored = ablation.arrays(question, effect, off, ranked)
    if name == ENCODER:  # The same numbers under the same names as in the table.
        states = effects.states_table(question, effect)
        np.testing.assert_array_equal(stored["one_minus_cosine"], states["1 − cosine"])
        np.testing.assert_array_equal(stored["relative_distance"], states["relative distance"])
        names_of_both = "mean_one_minus_cosine", "mean_relative_distance"
    else:
        table = effects.predictions_table(question, effect)
        for when in ("before", "after"):
            logs = stored[f"log_p_{when}"][table["id"]]
            np.testing.assert_allclose(np.exp(logs, dtype="f8"), table[f"p {when}"], rtol=1e-5)
            assert np.exp(stored[f"log_p_{when}"], dtype="f8").sum() == pytest.approx(1, abs=1e-5)
        names_of_both = "divergence_nats", "change_of_top_logit"
    assert [float(stored[key]) for key in names_of_both] == [
        pytest.approx(effect.size),
        pytest.approx(effect.second),
    ]
    assert stored["heads_off"].tolist() == [[0, 1], [1, 2]]
    assert stored[f"{names_of_both[0]}_of_each_head"].shape == (2, 3)


def test_files_are_created_only_on_click():
    def page() -> None:
        import pandas as pd

        from ui.export import downloads, tables

        class FailingFrame(pd.DataFrame):
            def to_csv(self, **options: object) -> str:  # type: ignore[override]
                raise RuntimeError("made without a click")

        def fail() -> dict[str, object]:
            raise RuntimeError("made without a click")

        downloads.panel(
            "p",
            downloads.csv("a", FailingFrame, "a"),
            downloads.npz("b", fail, "b"),
            snippet="print(1)",
            note="what it is",
        )
        tables.download("c", FailingFrame(), "c.csv", key="c")

    site = AppTest.from_function(page)
    site.session_state["p_downloads_opened"] = True
    site.run()
    assert not site.exception
    assert len(site.get("download_button")) == 3


def link_of(site: AppTest) -> dict[str, list[str]]:
    """The parameters of the page's link. AppTest doesn't know the address itself."""
    (address,) = [text for text in code(site) if text.startswith("?")]
    return urllib.parse.parse_qs(address[1:], keep_blank_values=True)


def test_link_includes_a_preset_from_the_same_run(site: AppTest):
    page = "pages/compare/ablate/page.py"
    open_whole_page(site, page)
    site.menu_button("ablate_text_example").click("three small effects, one large").run()
    site.radio("ablate_kind").set_value("uniform").run()
    link = link_of(site)
    preset = pickers.PRESETS["three small effects, one large"]
    assert link == {
        "ablate_text": [preset["ablate_text"]],
        "ablate_heads": preset["ablate_heads"],
        "ablate_kind": ["uniform"],
    }  # Model and position are unchanged.
    other = AppTest.from_file(FRAME, default_timeout=60)
    other.query_params.update(link)
    open_whole_page(other, page)
    assert not other.toast
    assert link_of(other) == link
    other.multiselect("ablate_heads").set_value([]).run()
    assert link_of(other)["ablate_heads"] == [""]


def test_default_view_links_to_the_plain_address(site: AppTest):
    open_page(site, SIDE)
    assert not [text for text in code(site) if text.endswith("?")]


def test_side_by_side_changes_are_in_the_link(site: AppTest):
    open_page(site, SIDE, side_by_side_two="true")
    site.toggle("side_by_side_rows").set_value(True)
    site.text_input("side_by_side_text_b").set_value("a & b = c?;été %20 #").run()
    link = link_of(site)
    assert link["side_by_side_text_b"] == ["a & b = c?;été %20 #"]
    assert link["side_by_side_rows"] == link["side_by_side_two"] == ["true"]
    changed = {"side_by_side_two", "side_by_side_rows", "side_by_side_text_b"}
    assert set(link) == changed
    for select in site.select_slider:
        select.set_value(2)
    site.selectbox("side_by_side_colours").set_value("linear")
    site.radio("side_by_side_view").set_value("words").run()
    changed |= {widget.key for widget in site.select_slider}
    assert set(link_of(site)) == {*changed, "side_by_side_colours", "side_by_side_view"}


@pytest.mark.parametrize("view", ["compare/heads", "compare/word_pairs", "start/one_pass"])
def test_open_page_and_its_files_keep_no_recorded_pass(site: AppTest, view: str):
    page = view.rpartition("/")[2]
    text = f"Nine grey geese fly over {page}"
    open_page(site, f"pages/{view}/page.py", **{f"{page}_text": text, f"{page}_model": DECODER})
    assert not site.exception
    assert len(site.get("download_button")) > 1
    tensors = weakref.ref(attention.run(DECODER, text).tensors)
    attention.run_forward.clear()
    gc.collect()
    assert tensors() is None
