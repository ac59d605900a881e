"""The Variants page: bytes, sharing, drift and times, without the page's code."""

import re
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.kv_cache.variants import key_readers, timing
from pages.kv_cache.variants.experiment.pool_kv_heads import mean_pooled_kv_heads
from pages.kv_cache.variants.timing import VariantTimingJob
from tests.helpers.apptest import messages, number_of, open_whole_page, place, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.charts import drawn_charts
from tests.helpers.jobs import finish
from ui.widgets import controls

VIEW = "pages/kv_cache/variants/page.py"
TEXT = "The next day is bright"


@pytest.fixture(autouse=True)
def _disable_cache() -> None:
    timing.measure_times.clear()


def table_with(site: AppTest, column: str) -> Any:
    """The page's first table with this column."""
    return next(table for table in site.dataframe if column in table.value.columns)


def frame(site: AppTest, column: str) -> Any:
    return table_with(site, column).value


def cache_table(site: AppTest) -> pd.DataFrame:
    return next(table for table in plain_tables(site) if "read by query heads" in table)


def page_text(site: AppTest, words: str) -> str:
    return next(text.value for text in [*site.text, *site.markdown] if words in text.value)


def test_bytes_follow_the_shapes(site: AppTest):
    open_whole_page(site, VIEW, variants_text=TEXT, variants_heads="9", variants_form="GQA 3")
    assert not site.exception
    n = len(TEXT)
    (table,) = (t.set_index("form") for t in plain_tables(site) if "measured, B" in t)
    assert list(table.index) == ["MHA", "GQA 3", "MQA", "MLA", "MHA, window 16"]
    # 2 layers, float32, heads of size 64. MLA caches 4 x 64 and 64 / 2.
    expected = {"MHA": 2 * 9 * 64, "GQA 3": 2 * 3 * 64, "MQA": 2 * 64, "MLA": 256 + 32}
    for form, numbers in expected.items():
        assert table.loc[form, "measured, B"] == 2 * n * numbers * 4
        assert table.loc[form, "B per token kept"] == 2 * numbers * 4
    assert table.loc["MHA, window 16", "measured, B"] == 2 * 16 * 1152 * 4
    assert (table["measured, B"] == table["formula, B"]).all()
    assert (table["measured, B"] == 2 * table["in 16 bits, B"]).all()
    links = drawn_charts(site)[0].layers[0]
    assert list(zip(links["head"], links["reads"], strict=True)) == [
        (head, f"KV head {head // 3}") for head in range(9)
    ]
    assert cache_table(site)["read by query heads"].tolist() == ["0, 1, 2", "3, 4, 5", "6, 7, 8"]
    assert page_text(site, "384 numbers")
    assert number_of(page_text(site, "logits of the two forms").rsplit("**", 2)[1]) < 1e-5
    site.select_slider("variants_form").set_value("MLA").run()
    assert not site.exception
    assert cache_table(site)["numbers per token"].tolist() == [256, 32]
    links, heads = drawn_charts(site)[0].layers[:2]
    assert len(links) == 18  # Every head reads the latent and the shared key.
    assert len(heads) == 9
    site.select_slider("variants_heads").set_value(8).run()
    assert site.select_slider("variants_form").value == "MLA"
    assert page_text(site, "2.25 groups")


def test_impossible_group_count_falls_back(site: AppTest):
    open_whole_page(site, VIEW)
    assert not messages(site)
    assert site.text_input("variants_text").value == controls.ANIMAL
    assert site.select_slider("variants_form").value == "GQA 4"
    site.select_slider("variants_form").set_value("GQA 6").run()
    site.select_slider("variants_heads").set_value(9).run()
    assert not site.exception
    assert site.select_slider("variants_form").value == "MHA"
    for text, message in (("", "type a word"), ("é" * 300, "88 over the limit of 512")):
        site.text_input("variants_text").set_value(text).run()
        assert not site.exception
        assert message in messages(site)[0]
        assert site.text_input("variants_text").value == text


def test_cached_keys_match_the_models():
    ladder = key_readers.run_ladder(TEXT, 12)
    model = key_readers.family(12)["GQA 4"]
    record = model(torch.tensor([list(TEXT.encode())]), record=True).records[0]
    for group, part in enumerate(ladder.forms["GQA 4"].parts):
        assert part.read_by == (3 * group, 3 * group + 1, 3 * group + 2)
        torch.testing.assert_close(torch.from_numpy(part.values), record.k[0, group])
    assert ladder.mean_difference < 1e-5
    assert key_readers.run_latent_forms(TEXT, 12).difference < 1e-5


@pytest.mark.parametrize(("model", "heads"), [(ENCODER, 2), (DECODER, 1)])
def test_drift_matches_the_pooled_model(site: AppTest, model: str, heads: int):
    open_whole_page(site, VIEW, variants_text=TEXT, variants_model=model)
    assert not site.exception
    own = bundled_model(model)
    ids = torch.tensor([own.tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        a = own.core(ids, record=True)
        b = mean_pooled_kv_heads(own.core, heads)(ids, record=True)
    table = frame(site, "attention moved").set_index("key/value heads")
    assert table.index[0] == own.core.config.kv_heads
    assert table.iloc[0]["mean difference"] == 0.0
    x, y = a.hidden[0].double(), b.hidden[0].double()
    relative = (y - x).norm(dim=-1) / x.norm(dim=-1)
    assert table.loc[heads, "mean difference"] == pytest.approx(float(relative.mean()), rel=1e-4)
    cosine = 1 - torch.cosine_similarity(x, y, dim=-1).mean()
    assert table.loc[heads, "mean 1 − cosine"] == pytest.approx(float(cosine), rel=1e-4)
    change = [
        (p.weights - q.weights).abs().sum(-1).mean() / 2
        for p, q in zip(a.records, b.records, strict=True)
    ]
    mean = float(torch.stack(change).mean())
    assert table.loc[heads, "attention moved"] == pytest.approx(mean, rel=1e-4)
    if a.logits is not None and b.logits is not None:
        p, q = (out.logits[0, -1].double().log_softmax(-1) for out in (a, b))
        kl = float((p.exp() * (p - q)).sum())
        assert table.loc[heads, "divergence, nats"] == pytest.approx(kl, rel=1e-4)
        assert bool(table.loc[heads, "unchanged"]) == bool(p.argmax() == q.argmax())


def test_trained_group_shows_the_heads_that_share_a_key(site: AppTest):
    open_whole_page(site, VIEW, variants_text=TEXT, variants_layer="7", variants_group="2")
    own = bundled_model(DECODER)
    ids = torch.tensor([own.tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        record = own.core(ids, record=True).records[7]
    weights = record.weights[0, 6:9]
    pairs = [
        (weights[i] - weights[j])[1:].abs().sum(-1).mean() / 2 for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    line = page_text(site, "share key/value head 2")
    assert "query heads 6, 7, 8" in line
    percentage = int(re.findall(r"two of them differ in (\d+)%", line)[0])
    assert percentage == pytest.approx(100 * float(torch.stack(pairs).mean()), abs=0.51)
    table = frame(site, "head 8: weight")
    assert table["head 8: weight"].to_numpy() == pytest.approx(weights[2].amax(-1).numpy())


def test_measured_times_are_kept(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timing, "REPEATS", 3)
    open_whole_page(site, VIEW, variants_text=TEXT, variants_heads="8", variants_context="256")
    assert page_text(site, "The times haven't been measured yet")
    counts = frame(site, "operations, MHA = 1").set_index("form")
    # One step of 2 layers after 256 tokens: width 576, 8 heads of 72, MLP 1536, vocabulary 256.
    rest = 2 * (576 * 576 + 257 * 2 * 576 + 3 * 576 * 1536) + 576 * 256
    mha, mqa = (rest + 2 * 576 * (576 + 2 * 72 * heads) for heads in (8, 1))
    assert counts.loc["MQA", "operations, MHA = 1"] == pytest.approx(mqa / mha)
    assert counts.loc["MHA", "million ops"] == pytest.approx(2 * mha / 1e6)
    site.button("variants_measure").click().run()
    job: VariantTimingJob = site.session_state["variants_job"]
    location_while_running = place(site, table_with(site, "operations, MHA = 1"))
    assert finish(job).state == "done", job.error
    site.run()
    assert not site.exception
    # The finished result replaces the progress display and isn't shown a second time.
    assert place(site, table_with(site, "ms per step")) == location_while_running
    times = timing.cached_times(job.setting, job.round)
    assert times is not None
    table = frame(site, "ms per step").set_index("form")
    assert list(table.index) == ["MHA", "GQA 4", "GQA 2", "MQA", "MLA absorbed", "MLA expanded"]
    assert (table["ms per step"] > 0).all()
    assert table.loc["MHA", "MHA = 1"] == 1.0
    assert table.loc["GQA 2", "cache, MB"] == pytest.approx(2 * 256 * 2 * 2 * 72 * 4 / 1e6)
    assert times.difference < 1e-5
    assert times.cache_bytes["MLA expanded"] == times.cache_bytes["MLA absorbed"]
    ratio = times.ratios["MLA absorbed"][0]
    assert page_text(site, f"{ratio:.2f} of MHA's time when absorbed")
    site.select_slider("variants_context").set_value(512).run()
    assert page_text(site, "The times haven't been measured yet")


def test_summary_names_every_variant_that_is_clearly_faster():
    """The variant with the smallest median may be inconclusive while a different one is clear."""
    spread = {"MHA": 1.0, "GQA 2": 0.8, "MQA": 0.5, "MLA absorbed": 1.0, "MLA expanded": 3.0}
    seconds = {name: (value,) * 9 for name, value in spread.items()}
    seconds["MQA"] = (0.5,) * 5 + (1.5,) * 4
    ones = dict.fromkeys(spread, 1)
    setting = timing.setting(TEXT, 8, 256)
    times = timing.VariantTimes(setting, seconds, ones, ones, 0.0, 1, datetime.now(UTC))
    assert "GQA 2 takes 0.80 of MHA's time" in timing.summary(times)
    times.seconds["GQA 2"] = times.seconds["MHA"]
    assert "MQA has the smallest median with 0.50 of MHA's time" in timing.summary(times)
    assert "No form is clearly faster" in timing.summary(times)


def test_stopped_measurement_is_discarded():
    job = VariantTimingJob(timing.setting(TEXT, 8, 4096), 0)
    job.stop()
    job.run()
    assert job.state == "stopped"
    assert timing.cached_times(job.setting, 0) is None
