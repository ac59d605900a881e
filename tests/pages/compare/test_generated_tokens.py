"""Compare the Generated tokens page to tensors computed without the page's code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from attention_core import generate
from pages.compare.generated_tokens import downloads, run, sink, step
from serving import models
from serving.limits import OverLimit
from tests.helpers.apptest import messages, open_whole_page
from tests.helpers.bundled_models import DECODER
from tests.helpers.charts import drawn_charts
from tests.helpers.drawn_tensors import unpack_drawing
from tests.helpers.snippets import run_snippet
from ui.text.formatting import percent

PAGE = "pages/compare/generated_tokens/page.py"
PROMPT = "Two cats sat. Two"
N_NEW, STEP, LAYER, HEAD = 4, 3, 17, 5
LINK = {
    "generated_tokens_prompt": PROMPT,
    "generated_tokens_new": str(N_NEW),
    "generated_tokens_step": str(STEP),
}


@pytest.fixture(scope="module")
def expected() -> tuple[list[int], int, torch.Tensor, Any]:
    """All ids, the prompt length, the weights (L, H, S, S) and the output of one pass."""
    model = models.get(DECODER)
    prompt = list(model.tokenizer.encode(PROMPT).ids)
    new = generate(model.core, prompt, max_new_tokens=N_NEW)
    with torch.inference_mode():
        output = model.core(torch.tensor([prompt + new[:-1]]), record=True)
    weights = torch.cat([record.weights for record in output.records])
    return prompt + new, len(prompt), weights, output


def run_line(site: AppTest) -> str:
    """The progress line of the generation."""
    return str(site.get("progress")[0].proto.text)


def components(site: AppTest) -> list[bytes]:
    protos = [element.proto for element in site.get("bidi_component")]
    return [proto.bytes for proto in protos if proto.WhichOneof("data") == "bytes"]


def shaded(site: AppTest) -> dict[str, Any]:
    return json.loads(components(site)[0])


def heatmap(site: AppTest) -> np.ndarray:
    header, body = unpack_drawing(components(site)[1])
    return np.frombuffer(body, "<f4").reshape(header["rows"], header["columns"])


def test_link_restores_the_step(site: AppTest, expected):
    ids, n_prompt, weights, output = expected
    open_whole_page(site, PAGE, **LINK)
    assert not site.exception
    assert not site.toast
    query = n_prompt + STEP - 2
    tokens = shaded(site)["tokens"]
    assert len(tokens) == len(ids)
    row = weights[LAYER, HEAD, query, : query + 1].numpy()
    np.testing.assert_allclose([t[1] for t in tokens[: query + 1]], row, atol=1e-5)
    assert all(value is None for _, value, *_ in tokens[query + 1 :])
    assert [t[3] for t in tokens[query : query + 2]] == ["asks", "chosen"]
    assert [t[4] for t in tokens] == [position > query + 1 for position in range(len(ids))]
    np.testing.assert_allclose(heatmap(site), weights[LAYER, HEAD].numpy(), atol=1e-5)
    bars = drawn_charts(site)[0]
    # The axis has space for all keys.
    assert len(set(bars.channel("x")["scale"]["domain"])) == len(ids) - 1
    np.testing.assert_allclose(bars.rows["weight"], row, atol=1e-5)
    choices, table = site.dataframe[0].value, site.dataframe[1].value
    np.testing.assert_allclose(table["weight"], row, atol=1e-5)
    top = output.logits[0, query].softmax(-1).topk(5)
    np.testing.assert_allclose(choices["probability"], top.values, atol=1e-4)
    assert list(choices["chosen"]) == ["✓", "", "", "", ""]
    assert percent(row.max()) in site.text[0].value

    site.selectbox("generated_tokens_which").set_value(step.ALL)
    site.toggle("generated_tokens_without").set_value(True).run()
    mean = weights.mean((0, 1))[query, : query + 1].numpy()
    mean[0] = 0
    actual = [t[1] for t in shaded(site)["tokens"][: query + 1]]
    np.testing.assert_allclose(actual, mean / mean.sum(), atol=1e-5)

    # The checks below don't need the other parts of the page, so skip them.
    site.button_group("generated_tokens_part").set_value("What this step could choose")
    site.slider("generated_tokens_new").set_value(2)  # The third step no longer exists.
    site.button("generated_tokens_go").click().run()
    assert not site.exception
    assert len(shaded(site)["tokens"]) == n_prompt + 2
    assert site.slider("generated_tokens_step").value <= 2


def test_downloads_and_snippet_match_the_page(expected, capsys: pytest.CaptureFixture[str]):
    ids, n_prompt, weights, _ = expected
    result = run.generation(run.SamplingSettings(DECODER, PROMPT, N_NEW, 0.0, 0))
    assert result.trace.ids == tuple(ids)
    view = step.show(result, step.HeadView(step.ONE, LAYER, HEAD, False))
    rows = step.all_rows(view)
    assert len(rows) == sum(n_prompt + i for i in range(N_NEW))
    actual = weights[LAYER, HEAD].numpy()[rows["query position"], rows["key position"]]
    np.testing.assert_allclose(rows["weight"], actual, atol=1e-5)
    stored = downloads.arrays(result)
    assert stored["weights"].dtype == np.float32
    np.testing.assert_allclose(stored["weights"], weights.numpy(), atol=1e-5)
    assert [*stored["prompt_ids"], *stored["new_ids"]] == ids
    for which, without in ((step.ONE, False), (step.LAYER, True)):
        view = step.show(result, step.HeadView(which, LAYER, HEAD, without))
        names, _ = run_snippet(step.snippet(view, STEP - 1), capsys)
        np.testing.assert_allclose(names["row"], view.weights[n_prompt + STEP - 2], atol=1e-5)


def test_sink_measures(site: AppTest, expected):
    ids, _, _, _ = expected
    open_whole_page(site, PAGE, **LINK)
    model = models.get(DECODER)
    with torch.inference_mode():
        output = model.core(torch.tensor([ids]), record=True)
    weights = torch.cat([record.weights for record in output.records])
    on_first = weights[:, :, 1:, 0].mean()
    summary = next(m.value for m in site.markdown if "Weight." in m.value)
    assert f"**{percent(float(on_first))}**" in summary
    states = torch.cat(output.hidden_states).norm(dim=-1)
    ratio = states[:, 0] / states[:, 1:].quantile(0.5, dim=-1)
    peak = int(ratio.argmax())
    assert f"{peak} layers" in summary
    assert f"**{ratio[peak]:.1f} times**" in summary
    table = site.dataframe[2].value
    assert table["attention it gets"][0] == pytest.approx(float(on_first), abs=1e-5)
    dropped, hidden = table.iloc[-2], table.iloc[-1]
    assert (dropped["sink position"], hidden["sink position"]) == (0, 1)
    assert dropped["attention it gets"] == pytest.approx(hidden["attention it gets"], abs=1e-5)


def test_invalid_and_hostile_prompts(site: AppTest):
    hostile = "<img src=x> ![x](http://example.invalid/x.png) 👩\n**b** \u202e"
    sampling = {"generated_tokens_seed": "7", "generated_tokens_temperature": "1.5"}
    open_whole_page(
        site, PAGE, generated_tokens_prompt=hostile, generated_tokens_new="3", **sampling
    )
    assert not site.exception
    assert not messages(site)
    assert not any("example.invalid" in m.value or "<img" in m.value for m in site.markdown)
    assert sum(site.dataframe[0].value["chosen"] == "✓") == 1
    assert "temperature 1.5 with seed 7" in run_line(site)
    for prompt, message in (("", "type a word"), ("a " * 200, "over the limit of 96")):
        site.text_input("generated_tokens_prompt").set_value(prompt)
        site.button("generated_tokens_go").click().run()
        assert not site.exception
        assert any(message in m for m in messages(site))
        assert site.text_input("generated_tokens_prompt").value == prompt


def test_stopped_run_stays_stopped(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    run.generation.clear()
    requests: list[run.SamplingSettings] = []

    def fail_if_run(settings: run.SamplingSettings, on_progress: Any) -> run.Generation:
        requests.append(settings)
        raise ValueError("ran")

    monkeypatch.setattr(run, "_generate", fail_if_run)
    settings = run.SamplingSettings(DECODER, PROMPT, 5, 0.0, 0)
    site.session_state["generated_tokens_stopped"] = settings
    open_whole_page(site, PAGE, generated_tokens_prompt=PROMPT, generated_tokens_new="5")
    assert requests == []
    assert not messages(site)
    assert "Stopped" in run_line(site)
    site.button("generated_tokens_go").click().run()
    assert requests == [settings]
    assert messages(site) == ["ran"]


def test_run_reports_progress_and_can_be_abandoned():
    counts: list[int] = []

    def report(count: int) -> None:
        counts.append(count)
        if count == 2:
            raise InterruptedError

    settings = run.SamplingSettings(DECODER, "Nobody else runs this", 6, 0.0, 0)
    with pytest.raises(InterruptedError):
        run.generation(settings, report)
    assert max(counts) == 2
    assert run.generation(settings).trace.n_steps == 6  # The abandoned run released its locks.
    with pytest.raises(OverLimit, match="2 to 40 .*not 41"):
        run.generation(run.SamplingSettings(DECODER, PROMPT, 41, 0.0, 0))


def test_model_with_a_short_context(site: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "tiny-gpt2"
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_positions=9, n_embd=12, n_layer=2, n_head=3)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    link = {"model": "tiny-gpt2", "prompt": "The cat sat", "step": "7", "layer": "1", "head": "2"}
    open_whole_page(site, PAGE, **{f"generated_tokens_{name}": at for name, at in link.items()})
    assert not site.exception
    assert not messages(site)
    # The model reads the ninth token. The tenth is selected but never read.
    assert len(shaded(site)["tokens"]) == 10
    assert shaded(site)["title"].endswith("L1H2")
    result = run.generation(run.SamplingSettings("tiny-gpt2", "The cat sat", 24, 0.0, 0))
    assert "7 new tokens" in result.end_reason
    assert sink.measure_all(result).heads.shape == (2, 3)
