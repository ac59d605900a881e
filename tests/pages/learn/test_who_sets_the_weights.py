"""Compare the Who sets the weights page to training steps computed with torch.func."""

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from pages.learn.who_sets_the_weights import run, sections
from serving import models
from serving.limits import OverLimit
from tests.helpers.apptest import maps, messages, open_page, open_whole_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_GPT2, bundled_model
from tests.helpers.charts import DrawnChart, drawn_charts
from ui.text.formatting import percent

VIEW = "pages/learn/who_sets_the_weights/page.py"
TEXT = "Nine bells rang over the harbour"
RATE, LAYER, HEAD = 0.001, 4, 5
WIDTH, HEAD_SIZE, N_HEADS, LAST = 256, 32, 8, 5


@dataclass(frozen=True)
class ExpectedTraining:
    """Two training steps on TEXT: states before, between and after, and changes.

    losses: one per position. weights: attention weights of all heads. keys: keys in LAYER.
    gradients: gradients in LAYER before the first step. shares: relative change of the embeddings
    and of W_o in the first and last layers.
    """

    labels: tuple[str, ...]
    losses: list[torch.Tensor]
    weights: list[torch.Tensor]
    keys: list[torch.Tensor]
    gradients: dict[str, torch.Tensor]
    shares: dict[str, float]


def length(tensor: torch.Tensor) -> float:
    return float(tensor.norm())


@pytest.fixture(scope="module")
def expected() -> ExpectedTraining:
    """Compute the steps as pure functions of the weights, without in-place changes."""
    model = bundled_model(FIRST_GPT2)
    tokens = model.tokenizer.encode(TEXT)
    ids = torch.tensor([tokens.ids])
    own = {name: parameter.detach() for name, parameter in model.core.named_parameters()}
    now, losses, weights, keys, first = own, [], [], [], {}
    for step in range(3):
        with torch.set_grad_enabled(step < 2):
            leaves = {
                name: tensor.detach().requires_grad_(step < 2) for name, tensor in now.items()
            }
            output = functional_call(model.core, leaves, (ids,), {"record": True})
            each = cross_entropy(output.logits[0, :-1], ids[0, 1:], reduction="none")
        losses.append(each.detach())
        weights.append(torch.stack([record.weights[0].detach() for record in output.records]))
        keys.append(output.records[LAYER].k.detach())
        if step < 2:
            gradients = torch.autograd.grad(each.mean(), list(leaves.values()))
            by_name = dict(zip(leaves, gradients, strict=True))
            first = first or {name: g for name, g in by_name.items() if f"blocks.{LAYER}." in name}
            now = {name: tensor - RATE * by_name[name] for name, tensor in now.items()}

    def share(*names: str) -> float:
        change, before = (
            torch.cat([tensors[name].flatten() for name in names])
            for tensors in ({name: now[name] - own[name] for name in names}, own)
        )
        return length(change) / length(before)

    shares = {
        "embeddings": share("unembedding", "positions"),
        **{layer: share(f"blocks.{layer}.attention.out.weight") for layer in ("0", str(LAST))},
    }
    return ExpectedTraining(tokens.labels, losses, weights, keys, first, shares)


def open_lesson(site: AppTest, part: str, steps: int = 2) -> None:
    open_page(
        site,
        VIEW,
        who_sets_the_weights_text=TEXT,
        who_sets_the_weights_rate=str(RATE),
        who_sets_the_weights_steps=str(steps),
        who_sets_the_weights_layer=str(LAYER),
        who_sets_the_weights_head=str(HEAD),
        who_sets_the_weights_part=part,
    )
    assert not site.exception
    assert not site.toast


def chart(site: AppTest, *columns: str) -> DrawnChart:
    """The chart with these columns."""
    (results,) = [c for c in drawn_charts(site) if set(columns) <= set(c.rows)]
    return results


def page_text(site: AppTest, begin: str) -> str:
    (text,) = [e.value for e in (*site.markdown, *site.text) if e.value.startswith(begin)]
    return str(text)


def page_numbers(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def parts_table(site: AppTest) -> pd.DataFrame:
    return plain_tables(site)[0]


def test_losses_and_weight_changes(site: AppTest, expected: ExpectedTraining):
    open_lesson(site, sections.MAPS)
    means = [float(losses.mean()) for losses in expected.losses]
    np.testing.assert_allclose(chart(site, "step", "loss").rows["loss"], means, atol=1e-4)
    table = parts_table(site)
    assert table["numbers"].sum() == sum(
        p.numel() for p in bundled_model(FIRST_GPT2).core.parameters()
    )
    rows = chart(site, "moved", "kind").rows
    for layer in (0, LAST):
        row = rows[(rows["layer"] == layer) & (rows["kind"] == "W_o")]
        share = expected.shares[str(layer)]
        assert float(row["moved"].iloc[0]) == pytest.approx(share, rel=2e-3)
    layer_gradients = table[table["layer"] == LAYER].set_index("kind")["gradient"]
    qkv = expected.gradients[f"blocks.{LAYER}.attention.qkv.weight"]
    for kind, gradient in zip(("W_q", "W_k", "W_v"), qkv.split(WIDTH), strict=True):
        assert layer_gradients[kind] == pytest.approx(length(gradient), rel=6e-3)
    text = page_text(site, "The loss")
    first, last, after, before = page_numbers(text)[:4]
    assert (first, last) == pytest.approx((means[0], means[2]), abs=6e-4)
    assert ("**fell**" in text) == (means[2] < means[0])
    assert (before, after) == pytest.approx(
        (100 * math.exp(-means[0]), 100 * math.exp(-means[2])), rel=0.06
    )
    extremes = rows.loc[[rows["moved"].idxmax(), rows["moved"].idxmin()]]
    most, least = (f"{row.kind} of layer {row.layer}" for row in extremes.itertuples())
    assert most in text.split("moved most")[0]
    assert least in text.split("moved most")[1]
    embeddings = table[table["kind"] == "embeddings"]["change ÷ length"].iloc[0]
    assert embeddings == pytest.approx(expected.shares["embeddings"], rel=6e-3)


def test_head_before_and_after(site: AppTest, expected: ExpectedTraining):
    open_lesson(site, sections.MAPS)
    before, after = expected.weights[0][LAYER, HEAD], expected.weights[2][LAYER, HEAD]
    heatmaps = maps(site)
    for (header, values), tensor in zip(heatmaps, (before, after, after - before), strict=True):
        np.testing.assert_allclose(values, tensor, atol=1e-4)
        assert header["labels"] == list(expected.labels)
    change = (after - before).abs()
    sentence = page_text(site, "In L4H5, the weight")
    # If a token sees two keys, both change equally, and rounding decides which one is named.
    places = (change > change.max() - 1e-6).nonzero().tolist()
    assert any(
        f"from {percent(float(before[query, key]))} to {percent(float(after[query, key]))}"
        in sentence
        for query, key in places
    )


def test_chain_rule_to_one_head(site: AppTest, expected: ExpectedTraining):
    open_lesson(site, sections.CHAIN)
    n_tokens = len(expected.labels)
    rows = slice(HEAD * HEAD_SIZE, (HEAD + 1) * HEAD_SIZE)
    w_q = expected.gradients[f"blocks.{LAYER}.attention.qkv.weight"][rows]
    product, result = page_numbers(page_text(site, ":small[Check: the last two factors"))
    assert product == pytest.approx(length(w_q), rel=2e-3)
    assert result == pytest.approx(length(w_q), rel=2e-3)
    table = plain_tables(site)[1]
    assert table["length"].iloc[-1] == pytest.approx(length(w_q), rel=6e-3)
    shapes = list(table["shape"])
    assert shapes[1] == f"({n_tokens}, 8,192)"
    assert shapes[-5:] == [
        f"({n_tokens}, 32)", f"({n_tokens}, {n_tokens})", f"({n_tokens}, {n_tokens})",
        f"({n_tokens}, 32)", "(256, 32)",
    ]  # fmt: skip
    # Softmax minus the one-hot target, divided by the number of predictions.
    model, ids = bundled_model(FIRST_GPT2), bundled_model(FIRST_GPT2).tokenizer.encode(TEXT).ids
    with torch.no_grad():
        chances = model.core(torch.tensor([ids])).logits[0, :-1].softmax(-1)
    chances[torch.arange(n_tokens - 1), torch.tensor(ids[1:])] -= 1
    assert table["length"].iloc[1] == pytest.approx(length(chances) / (n_tokens - 1), rel=6e-3)
    ((_, scores),) = maps(site)
    np.testing.assert_allclose(scores.sum(1), 0, atol=1e-5)
    np.testing.assert_allclose(scores[0], 0, atol=1e-6)
    query, key = np.unravel_index(np.abs(scores).argmax(), scores.shape)
    sentence = page_text(site, "The score of")
    assert expected.labels[query] in sentence
    assert expected.labels[key] in sentence
    by_head = chart(site, "label", "value").rows
    qkv = expected.gradients[f"blocks.{LAYER}.attention.qkv.weight"][:WIDTH]
    head_norms = qkv.unflatten(0, (N_HEADS, HEAD_SIZE)).norm(dim=(1, 2))
    np.testing.assert_allclose(by_head["value"], head_norms, rtol=2e-3)


def test_all_positions_together(site: AppTest, expected: ExpectedTraining):
    open_lesson(site, sections.POSITIONS)
    rows = chart(site, "when", "loss").rows
    for when, losses in (("before", expected.losses[0]), ("after", expected.losses[2])):
        np.testing.assert_allclose(rows[rows["when"] == when]["loss"], losses, atol=1e-3)
    table = plain_tables(site)[1]
    assert list(table["next token"]) == list(expected.labels[1:])
    assert str(len(expected.labels) - 1) in page_text(site, "One pass makes")
    hardest = int(expected.losses[0].argmax())
    assert expected.labels[hardest + 1] in page_text(site, "“")


def test_tensors_saved_for_training(site: AppTest, expected: ExpectedTraining):
    open_lesson(site, sections.MEMORY)
    table = plain_tables(site)[1].set_index("")
    core, n_tokens = bundled_model(FIRST_GPT2).core, len(expected.labels)
    n_numbers = sum(parameter.numel() for parameter in core.parameters())
    assert table["training"]["gradients, one per weight"] == f"{4 * n_numbers / 1e6:,.0f} MB"
    assert (
        table["generation with a cache"]["KV cache"]
        == f"{2 * 6 * WIDTH * 4 * n_tokens / 1e6:.2f} MB"
    )
    assert table["training"]["predictions per pass"] == str(n_tokens - 1)
    saved_size = page_numbers(table["training"]["activations for the backward pass"])[0]
    # At least the hidden values of the MLPs before and after GELU, in every layer.
    assert saved_size > 2 * 6 * 1024 * 4 * n_tokens / 1e6
    change, largest = page_numbers(page_text(site, "**Why training has no KV cache**"))[1:3]
    before, after = expected.keys[0], expected.keys[2]
    assert change == pytest.approx(float((after - before).abs().max()), rel=6e-3)
    assert largest == pytest.approx(float(before.abs().max()), rel=6e-3)


def test_shared_model_is_unchanged_and_copy_is_freed():
    own = {
        name: tensor.clone() for name, tensor in bundled_model(FIRST_GPT2).core.state_dict().items()
    }
    run.run(run.FineTuningSettings(FIRST_GPT2, "It never changes", 0.1, 2))
    core = models.get(FIRST_GPT2).core
    assert all(torch.equal(tensor.cpu(), own[name]) for name, tensor in core.state_dict().items())
    assert all(not p.requires_grad and p.grad is None for p in core.parameters())
    assert run._training_copy.n_cached == 0


def test_queued_run_can_be_stopped():
    class ClientLeft(Exception):
        pass

    def leave(_: int) -> None:
        raise ClientLeft

    with run._one_at_a_time, pytest.raises(ClientLeft):
        run.run(run.FineTuningSettings(FIRST_GPT2, "Somebody else is training", 0.001, 1), leave)
    # A stopped run frees its slot, so the next one can start.
    with pytest.raises(ClientLeft):
        run.run(run.FineTuningSettings(FIRST_GPT2, "Stopped in its middle", 0.001, 1), leave)
    assert run._one_at_a_time.acquire(blocking=False)
    run._one_at_a_time.release()
    assert run._training_copy.n_cached == 0


def test_limits(monkeypatch: pytest.MonkeyPatch):
    for steps in (0, 6):
        with pytest.raises(OverLimit, match=str(steps)):
            run.run(run.FineTuningSettings(FIRST_GPT2, TEXT, 0.001, steps))
    with pytest.raises(ValueError, match=r"0\.5"):
        run.run(run.FineTuningSettings(FIRST_GPT2, TEXT, 0.5, 1))
    monkeypatch.setattr(run, "MAX_TRAINED_COPY_BYTES", 600_000_000)
    with pytest.raises(OverLimit, match="878 MB.*600 MB"):
        run.run(run.FineTuningSettings(DECODER, "A model that is too large", 0.001, 1))


def test_stopped_run_stays_stopped(site: AppTest):
    settings = run.FineTuningSettings(FIRST_GPT2, TEXT + " again", RATE, 1)
    site.session_state["who_sets_the_weights_run_stopped"] = settings
    open_page(
        site, VIEW, who_sets_the_weights_text=settings.text, who_sets_the_weights_rate=str(RATE)
    )
    assert not drawn_charts(site)
    assert not run.run.is_cached(settings)
    site.button("who_sets_the_weights_run_go").click().run()
    assert len(drawn_charts(site)) == 2


def test_encoder_has_no_loss(site: AppTest):
    """With MiniLM selected, the page runs GPT-2 instead and explains why."""
    open_page(site, VIEW, who_sets_the_weights_model=ENCODER)
    assert site.selectbox("who_sets_the_weights_model").value == FIRST_GPT2
    assert any("**MiniLM**" in element.value for element in site.markdown)


@pytest.mark.usefixtures("only_a_small_model")
def test_gpt2(site: AppTest):
    """GPT-2 has biases and doesn't rotate its queries."""
    open_whole_page(site, VIEW, who_sets_the_weights_text="Nine bells")
    assert not site.exception
    assert not messages(site)
    assert "biases" in set(parts_table(site)["kind"])
    product, result = page_numbers(page_text(site, ":small[Check: the last two factors"))
    assert product == pytest.approx(result, rel=1e-3)
