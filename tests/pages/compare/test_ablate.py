"""Run the Ablate page and compare it to tensors computed without the page's code."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from attention_core import Hooks
from attention_core.analysis.ablation import HeadChange, make_edit
from pages.compare.ablate import pickers, ranking, runs, sections
from pages.compare.ablate.ranking import RankJob
from serving import models
from serving.jobs import JobQueue
from serving.queues import GENERATIONS
from tests.helpers.apptest import (
    HOME,
    messages,
    open_page,
    open_whole_page,
    place,
    plain_tables,
)
from tests.helpers.jobs import finish
from tests.helpers.small_bert import save_bert, zero_head
from ui.text.formatting import percent

pytestmark = pytest.mark.usefixtures("bundled_weights")

PAGE = "pages/compare/ablate/page.py"
SMOLLM2, MINILM = pickers.SMOLLM2, pickers.MINILM
DEADLINE = 60.0


@pytest.fixture(autouse=True)
def _forget():
    ranking.rank_heads.clear()


def metric(site: AppTest, label: str) -> float:
    return float(next(m.value for m in site.metric if m.label == label))


@torch.inference_mode()
def log_probabilities(text: str, heads: list[str], kind: str = "zero") -> torch.Tensor:
    model = models.get(SMOLLM2)
    ids = torch.tensor([model.tokenizer.encode(text).ids])
    changes = [HeadChange(*runs.parse(head), kind) for head in heads]  # type: ignore[arg-type]
    return (
        model.core(ids, hooks=Hooks(edit_heads=make_edit([changes])))
        .logits[0, -1]
        .double()
        .log_softmax(-1)
    )


def test_page_opens_on_an_important_head(site: AppTest):
    open_whole_page(site, PAGE)
    before, after = (
        log_probabilities(pickers.CAPITAL, []),
        log_probabilities(pickers.CAPITAL, ["L23H4"]),
    )
    divergence = float((before.exp() * (before - after)).sum())
    assert divergence > 1.0
    assert metric(site, "Divergence (nats)") == pytest.approx(divergence, abs=2e-3)
    table = plain_tables(site)[0]
    assert set(before.topk(10).indices.tolist()) | set(after.topk(10).indices.tolist()) == set(
        table["id"]
    )
    # Five decimals, or two significant digits for small numbers, so that nothing is shown as 0.
    ids = table["id"].tolist()
    for column, logs in (("p before", before), ("p after", after)):
        actual, expected = table[column].to_numpy(), logs[ids].exp().numpy()
        assert (actual > 0).all()
        np.testing.assert_allclose(actual, expected, rtol=0.06, atol=1e-5)
    assert table["token"][0] == "Rome"
    assert (table["p before"].diff().dropna() <= 0).all()
    text = "\n".join(element.value for element in site.text)
    claim = text.splitlines()[0]
    assert "one head out of 270" in claim
    assert f"from {percent(table['p before'][0])} to {percent(table['p after'][0])}" in claim
    uniform = log_probabilities(pickers.CAPITAL, ["L23H4"], "uniform")
    other = float((before.exp() * (before - uniform)).sum())
    assert f"{other:.3f}" in text
    assert f"{divergence:.3f}" in text


def test_single_and_combined_effects(site: AppTest):
    open_whole_page(site, PAGE)
    site.menu_button("ablate_text_example").click("three small effects, one large").run()
    assert not site.exception
    heads = site.multiselect("ablate_heads").value
    text = site.text_input("ablate_text").value
    before = log_probabilities(text, [])

    def divergence(off: list[str]) -> float:
        return float((before.exp() * (before - log_probabilities(text, off))).sum())

    single_effects = [divergence([head]) for head in heads]
    line = next(e.value for e in site.text if "separate effects" in e.value)
    by_name = sorted(zip(heads, single_effects, strict=True))
    sizes = " + ".join(f"{size:.3f} ({head})" for head, size in by_name)
    assert f"{sizes} = {sum(single_effects):.3f}" in line
    assert f"{divergence(heads):.3f}." in line
    assert divergence(heads) > 2 * sum(single_effects)


def test_head_order_does_not_matter():
    question = runs.question(SMOLLM2, pickers.CAPITAL)
    heads = ["L3H1", "L0H0", "L23H4"]
    with runs.effect.disabled():
        first = runs.effect(question, heads, "zero")
        second = runs.effect(question, heads[::-1], "zero")
    assert len(set(first.alone)) == 3
    assert first.alone == second.alone


def test_other_position_and_no_ablation(site: AppTest):
    open_whole_page(site, PAGE, ablate_position="3", ablate_kind="uniform")
    assert any("position 3, “\u2068France\u2069”" in e.value for e in site.text)
    site.multiselect("ablate_heads").set_value([]).run()
    assert not site.exception
    assert metric(site, "Divergence (nats)") == 0.0
    table = plain_tables(site)[0]
    assert (table["p before"] == table["p after"]).all()
    # A shorter text doesn't have this position, so the choice returns to automatic.
    site.text_input("ablate_text").set_value("One").run()
    assert not site.exception
    assert site.selectbox("ablate_position").value == "automatic"


@torch.inference_mode()
def test_encoder_without_mlm_head_shows_hidden_states(site: AppTest):
    open_whole_page(site, PAGE)
    site.menu_button("ablate_text_example").click("an encoder").run()
    assert not site.exception
    model = models.get(MINILM)
    ids = torch.tensor([model.tokenizer.encode(site.text_input("ablate_text").value).ids])
    before = model.core(ids).hidden[0].double()
    after = (
        model.core(ids, hooks=Hooks(edit_heads=make_edit([[HeadChange(3, 1)]]))).hidden[0].double()
    )
    cosine = 1 - torch.cosine_similarity(before, after, dim=-1)
    table = plain_tables(site)[0]
    assert table["1 − cosine"].tolist() == pytest.approx(cosine.tolist(), abs=1e-5)
    relative = (after - before).norm(dim=-1) / before.norm(dim=-1)
    assert table["relative distance"].tolist() == pytest.approx(relative.tolist(), abs=1e-4)
    assert metric(site, "Mean 1 − cosine") == pytest.approx(float(cosine.mean()), abs=1e-4)


def test_ranking_on_request(site: AppTest):
    text = "A lamp before the storm"
    open_whole_page(site, PAGE, ablate_model=MINILM, ablate_text=text, ablate_heads="L0H0")
    site.button("ablate_rank").click().run()
    job = site.session_state["ablate_job"]
    location_while_running = place(site, site.dataframe[0])
    finish(job)
    assert (job.state, job.error, job.progress) == ("done", "", 1.0)
    site.run()
    # The finished result replaces the progress display and isn't shown a second time.
    assert place(site, site.dataframe[0]) == location_while_running
    table = site.dataframe[0].value
    assert len(table) == 6 * 12
    assert (table["mean 1 − cosine"].diff().dropna() <= 0).all()
    question = runs.question(MINILM, text)
    for row in (0, 7, 71):
        result = runs.effect(question, [table["name"][row]], "zero")
        assert table["mean 1 − cosine"][row] == pytest.approx(result.size, abs=1e-6)
        assert table["mean relative distance"][row] == pytest.approx(result.second, abs=1e-5)
    site.button("ablate_first").click().run()
    assert site.multiselect("ablate_heads").value == [table["name"][0]]
    site.button("ablate_next").click().run()
    assert site.multiselect("ablate_heads").value == table["name"][:2].tolist()
    assert site.button("ablate_rank").disabled
    site.radio("ablate_kind").set_value("uniform").run()  # A different measure needs a new ranking.
    assert not site.button("ablate_rank").disabled
    assert site.dataframe[0].value.empty


def test_short_text_is_ranked_automatically(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranking, "MAX_AT_ONCE_TOKENS", 8)
    monkeypatch.setattr(sections, "SHORT_SECONDS", DEADLINE)
    open_whole_page(
        site, PAGE, ablate_model=MINILM, ablate_text="A lamp before", ablate_heads="L0H0"
    )
    assert len(site.dataframe[0].value) == 6 * 12
    assert site.button("ablate_rank").disabled
    job = site.session_state["ablate_job"]
    # The selection doesn't change the ranking.
    site.multiselect("ablate_heads").set_value(["L0H1"]).run()
    assert site.session_state["ablate_job"] is job
    site.text_input("ablate_text").set_value("A lamp before the storm that came").run()
    # Texts of more than eight tokens are ranked only on request.
    assert "ablate_job" not in site.session_state
    assert site.dataframe[0].value.empty
    assert not site.button("ablate_rank").disabled


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short text whose automatic ranking runs until it is stopped."""
    monkeypatch.setattr(ranking, "MAX_AT_ONCE_TOKENS", 8)

    def work(job: RankJob) -> None:
        job._stop.wait(DEADLINE)
        job.check_stop()

    monkeypatch.setattr(RankJob, "work", work)


def running_job(site: AppTest) -> RankJob:
    """The ranking job, which is still running after the page is drawn."""
    job: RankJob = site.session_state["ablate_job"]
    assert job.is_live
    return job


@pytest.mark.usefixtures("endless")
def test_automatic_ranking_stops_when_the_page_or_its_settings_change(site: AppTest):
    link = {"ablate_model": SMOLLM2, "ablate_text": "A lamp before"}
    open_whole_page(site, PAGE, **link)
    first = running_job(site)
    site.run()
    assert running_job(site) is first
    assert not GENERATIONS.is_free
    site.radio("ablate_kind").set_value("uniform").run()
    second = running_job(site)
    assert (first.state, second.kind) == ("stopped", "uniform")
    open_page(site, HOME)
    assert second.state == "stopped"
    open_whole_page(site, PAGE, **link)
    third = running_job(site)
    assert third not in (first, second)
    third.stop()
    finish(third)


@pytest.mark.usefixtures("endless")
def test_requested_ranking_survives_navigation(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranking, "MAX_AT_ONCE_TOKENS", 0)
    open_whole_page(site, PAGE, ablate_model=SMOLLM2, ablate_text="A lamp before")
    site.button("ablate_rank").click().run()
    job = running_job(site)
    open_page(site, HOME)
    assert running_job(site) is job
    job.stop()
    finish(job)


@pytest.mark.usefixtures("endless")
def test_long_ranking_needs_a_request_on_a_busy_machine(site: AppTest):
    others = RankJob(runs.question(SMOLLM2, "A lamp before the storm"), "zero")
    GENERATIONS.put(others)
    open_whole_page(site, PAGE, ablate_model=SMOLLM2, ablate_text="A lamp before")
    assert "ablate_job" not in site.session_state
    assert not site.button("ablate_rank").disabled
    others.stop()
    finish(others)


def test_stopped_ranking_does_not_restart(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranking, "MAX_AT_ONCE_TOKENS", 8)
    monkeypatch.setattr(sections, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(RankJob, "work", lambda job: job.stop())
    open_whole_page(
        site, PAGE, ablate_model=MINILM, ablate_text="A lamp before", ablate_heads="L0H0"
    )
    job = site.session_state["ablate_job"]
    finish(job)
    site.run()
    assert site.session_state["ablate_job"] is job
    assert not site.button("ablate_rank").disabled


def test_stopped_ranking_is_not_cached():
    question = runs.question(SMOLLM2, "A lamp before the storm that nobody saw")

    class StopsAtOnce(RankJob):
        def check_stop(self, layer: int = 0) -> None:
            if layer == 3:
                self.stop()
            super().check_stop()

    job = StopsAtOnce(question, "zero")
    JobQueue().put(job)
    finish(job)
    assert job.state == "stopped"
    assert ranking.cached_ranking(question, "zero") is None
    assert math.isnan(job.ranking.sizes[-1, -1])


def test_masked_words(site: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reference = save_bert(tmp_path / "tiny-bert")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    text = "the old lamp sings ."
    open_whole_page(site, PAGE, ablate_model="tiny-bert", ablate_text=text, ablate_heads="L1H4")
    assert not site.exception
    message = next(e.value for e in site.text if "reads [MASK]" in e.value)
    assert "position 4" in message
    assert "“\u2068sings\u2069”" in message
    ids = list(models.get("tiny-bert").tokenizer.encode(text).ids)
    ids[4] = 4
    with torch.no_grad():
        before, after = (
            model(torch.tensor([ids])).logits[0, 4].softmax(-1)
            for model in (reference, zero_head(reference, "bert", 1, 4, 4))
        )
    table = plain_tables(site)[0]
    ids = table["id"].tolist()
    for column, expected in (("p before", before), ("p after", after)):
        np.testing.assert_allclose(table[column], expected[ids], rtol=0.06, atol=1e-5)
    site.text_input("ablate_text").set_value("the [MASK] lamp sings").run()
    assert any("masked at position 2" in e.value for e in site.text)
    site.selectbox("ablate_position").set_value("0").run()
    assert any("position 0" in m for m in messages(site))
    site.selectbox("ablate_position").set_value("automatic")
    site.text_input("ablate_text").set_value("...").run()
    assert any("no word to mask" in m for m in messages(site))


def test_rejected_input_is_named(site: AppTest):
    open_whole_page(site, PAGE)
    site.selectbox("ablate_model").set_value(MINILM).run()
    assert not site.exception
    assert any("L23H4" in toast.value for toast in site.toast)  # This model doesn't have that head.
    site.text_input("ablate_text").set_value("word " * 300).run()
    assert any("46 over the limit of 256" in m for m in messages(site))
    site.text_input("ablate_text").set_value("word " * 130).run()
    site.button("ablate_rank").click().run()
    assert any("4 over the limit of 128" in m for m in messages(site))
    with pytest.raises(ValueError, match="13 heads"):
        runs.effect(runs.question(MINILM, "a"), runs.names(models.spec(MINILM))[:13], "zero")
    with pytest.raises(ValueError, match="'L1'"):
        runs.parse("L1")
    with pytest.raises(ValueError, match="positions 0 to 2"):
        runs.question(MINILM, "a", "3")
