"""Compare the Cheaper models page to tensors computed without its code."""

import math

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn.functional import cross_entropy, kl_div

from attention_core import Sampling, generate, stream
from pages.learn.cheaper_models import distillation, drafts, experts, rewards
from serving import runs
from serving.limits import MAX_CHEAPER_TOKENS, MAX_CONTINUATIONS, MAX_CONTINUED_TOKENS, OverLimit
from tests.helpers.apptest import maps, messages, open_page, open_whole_page, plain_tables
from tests.helpers.browser import plain
from tests.helpers.bundled_models import ENCODER, FIRST_GPT2, bundled_model
from tests.helpers.charts import drawn_charts

VIEW = "pages/learn/cheaper_models/page.py"
TEXT = "Nine bells rang over the harbour, and nine"


def ids_of(text: str = TEXT) -> torch.Tensor:
    return torch.tensor([bundled_model(FIRST_GPT2).tokenizer.encode(text).ids])


def open_part(site: AppTest, name: str, text: str = TEXT, **query: str) -> None:
    open_page(site, VIEW, cheaper_models_text=text, cheaper_models_part=name, **query)
    assert not site.exception
    assert not site.toast


def page_text(site: AppTest, begin: str) -> str:
    texts = [plain(element.value) for element in (*site.markdown, *site.text)]
    (text,) = [text for text in texts if text.startswith(begin)]
    return text


# ---- experts


@pytest.mark.parametrize("way", experts.WAYS)
def test_expert_map_and_numbers(site: AppTest, way: str):
    layer, n_experts, k = 4, 8, 3
    open_part(
        site,
        experts.NAME,
        cheaper_models_layer=str(layer),
        cheaper_models_experts=str(n_experts),
        cheaper_models_kept=str(k),
        cheaper_models_sorted=way,
    )
    core = bundled_model(FIRST_GPT2).core
    with torch.inference_mode():
        record = core(ids_of(), record=True).layers[layer]
        hidden, down = record.mlp_hidden[0], core.blocks[layer].mlp.down.matrix
        units = torch.arange(1024)
        if way == experts.BY_TOKEN:
            units = torch.argsort((hidden.abs() * down.norm(dim=1)).argmax(0), stable=True)
        masks = torch.zeros(n_experts, 1024)
        for number, part in enumerate(units.reshape(n_experts, -1)):
            masks[number, part] = 1
        added = torch.stack([(hidden * mask) @ down for mask in masks], dim=1)
        lengths = added.norm(dim=-1)
        least = lengths.sort(dim=1, descending=True).values[:, k - 1 : k]
        output = (added * (lengths >= least)[..., None]).sum(1) + core.blocks[layer].mlp.down.bias
        error = (output - record.mlp_output[0]).norm(dim=-1) / record.mlp_output[0].norm(dim=-1)
        after = core.resume(record.attention_sum + output, layer + 1)[0, -1] @ core.unembedding
        before = core(ids_of()).logits[0, -1]
    (header, values) = maps(site)[0]
    assert header["rowLabels"] == list(bundled_model(FIRST_GPT2).tokenizer.encode(TEXT).labels)
    expected = torch.where(lengths >= least, lengths, torch.nan)
    np.testing.assert_allclose(values, expected.numpy(), rtol=1e-4, atol=1e-5)
    costs, tokens = plain_tables(site)[:2]
    assert costs.iloc[0, 1] == f"{float(error.mean()):.1%}"
    assert costs.iloc[1, 1] == f"{2 * 256 * 1024 * k // n_experts:,} ({k / n_experts:.1%})"
    likeliest = before.topk(len(tokens)).indices
    for column, logits in (("whole MLP", before), (f"{k} of {n_experts}", after)):
        shares = logits.softmax(-1)[likeliest]
        np.testing.assert_allclose(tokens[column], shares.numpy(), atol=6e-5)


def test_selected_expert_count_is_limited_by_the_total(site: AppTest):
    """Selecting more experts than exist keeps all of them."""
    open_part(site, experts.NAME, cheaper_models_kept="12")
    site.select_slider("cheaper_models_experts").set_value(8).run()
    assert not site.exception
    assert site.select_slider("cheaper_models_kept").value == 8
    assert np.isfinite(maps(site)[0][1]).all()
    assert plain_tables(site)[0].iloc[0, 1] == "0.0%"


# ---- drafts


def test_ranks_of_later_tokens(site: AppTest):
    open_part(site, drafts.NAME)
    ids = ids_of()[0]
    with torch.inference_mode():
        logits = bundled_model(FIRST_GPT2).core(ids[None]).logits[0]
    chart = drawn_charts(site)[0].rows
    table = plain_tables(site)[0]
    for row, (ahead, which) in enumerate(drafts.AHEAD.items()):
        expected = [
            int((logits[t] > logits[t, ids[t + ahead]]).sum()) + 1 for t in range(len(ids) - ahead)
        ]
        assert chart.loc[chart["which"] == which, "rank"].tolist() == expected
        counts = [f"{sum(r <= top for r in expected)} of {len(expected)}" for top in (1, 10, 100)]
        assert table.iloc[row].tolist() == [which, *counts]


def test_verified_draft_gives_the_greedy_text(site: AppTest):
    n_layers, n_drafted = 5, 4
    open_part(
        site,
        drafts.NAME,
        cheaper_models_drafted=str(n_drafted),
        cheaper_models_draft_layers=str(n_layers),
        cheaper_models_acceptance="0.5",
    )
    model, ids = bundled_model(FIRST_GPT2), ids_of()[0]
    with torch.inference_mode():
        text = ids
        for _ in range(n_drafted):
            state = model.core(text[None], record=True).hidden_states[n_layers][0, -1]
            logits = model.core.final_norm(state) @ model.core.unembedding
            text = torch.cat([text, logits.argmax()[None]])
    table = plain_tables(site)[1]
    names = [model.tokenizer.decode_bytes([int(i)]).decode() for i in text[len(ids) :]]
    assert table["draft"].tolist() == [*(name.strip() for name in names), "(none)"]
    n_written = table["result"].tolist().count("kept") + 1
    greedy = generate(model.core, ids, max_new_tokens=n_written)
    greedy_text = model.tokenizer.decode_bytes(greedy).decode().strip()
    sentence = page_text(site, f"One pass wrote {n_written} token")
    assert f"“{greedy_text}”" in sentence
    assert f"{1 + n_drafted * n_layers / 6:.1f} passes" in sentence
    tokens = drawn_charts(site)[1].rows["tokens"].tolist()
    assert tokens == pytest.approx([sum(0.5**i for i in range(n + 1)) for n in range(7)])


def test_draft_by_all_layers_is_accepted(site: AppTest):
    open_part(site, drafts.NAME, cheaper_models_draft_layers="6")
    happens = plain_tables(site)[1]["result"].tolist()
    assert happens == ["kept"] * 3 + ["replaced by the whole model's token"]


# ---- rewards


def test_each_continuation_depends_only_on_its_seed(site: AppTest):
    n, seed = 3, 5
    open_part(
        site,
        rewards.NAME,
        cheaper_models_continuations=str(n),
        cheaper_models_seed=str(seed),
        cheaper_models_rule="a word of your own",
        cheaper_models_word="absent and hostile <b>(a+)+$</b>",
    )
    model = bundled_model(FIRST_GPT2)
    table = plain_tables(site)[0]
    for number in range(n):
        steps = list(
            stream(
                model.core,
                ids_of(),
                max_new_tokens=MAX_CONTINUED_TOKENS,
                cache=model.core.new_cache(1, 60),
                sampling=Sampling(temperature=1.0, seed=seed * MAX_CONTINUATIONS + number),
                stop_ids=model.tokenizer.end_ids,
            )
        )
        text = model.tokenizer.decode_bytes([step.token_id for step in steps]).decode()
        cell = table["continuation"][number]
        assert cell.replace("⏎", "\n") == text
        mean = sum(step.logprob for step in steps) / len(steps)
        assert table["mean log p"][number] == pytest.approx(mean, abs=0.006)
    # The word occurs in no continuation: the model learns nothing, and the page explains why.
    assert table["reward"].tolist() == table["advantage"].tolist() == [0] * n
    assert len(site.info) == 1
    assert not drawn_charts(site)


def test_policy_gradient_matches_autograd(site: AppTest):
    open_part(site, rewards.NAME, cheaper_models_continuation="1", cheaper_models_token="2")
    table = plain_tables(site)[0]
    marks = table["reward"].to_numpy()
    assert set(marks) == {0, 1}  # Without both marks, this test would check nothing.
    advantages = (marks - marks.mean()) / marks.std()
    np.testing.assert_allclose(table["advantage"], advantages, atol=0.006)
    model = bundled_model(FIRST_GPT2)
    run = runs.run(FIRST_GPT2, TEXT, MAX_CHEAPER_TOKENS)
    samples = rewards.sample(rewards.RewardSettings(FIRST_GPT2, TEXT, 6, 0))[1]
    with torch.inference_mode():
        before = torch.tensor([[*run.tokens.ids, *samples.ids[:2]]])
        logits = model.core(before).logits[0, -1]
    leaf = logits.clone().requires_grad_()
    token = torch.tensor([samples.ids[2]])
    (gradient,) = torch.autograd.grad(advantages[1] * cross_entropy(leaf[None], token), leaf)
    (chart,) = drawn_charts(site)
    largest = gradient.abs().topk(len(chart.rows)).indices
    expected = sorted((-gradient[largest]).tolist(), reverse=True)
    np.testing.assert_allclose(chart.rows["value"], expected, atol=1e-5)
    p = float(logits.softmax(-1)[token])
    assert f"{p:.3f}" in page_text(site, f"“{samples.pieces[2]}”")


def test_rule_change_does_not_resample(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    open_part(site, rewards.NAME)
    before = plain_tables(site)[0]["continuation"].tolist()
    monkeypatch.setattr("attention_core.stream_batch", None)
    site.button_group("cheaper_models_rule").set_value(["a full stop"]).run()
    assert not site.exception
    assert plain_tables(site)[0]["continuation"].tolist() == before


@pytest.mark.parametrize("n", [1, MAX_CONTINUATIONS + 1])
def test_continuation_count_is_limited(n: int):
    with pytest.raises(OverLimit, match=str(n)):
        rewards.sample(rewards.RewardSettings(FIRST_GPT2, TEXT, n, 0))


# ---- distillation


def test_teacher_and_student(site: AppTest):
    n_layers, temperature = 4, 2.0
    open_part(
        site,
        distillation.NAME,
        cheaper_models_student_layers=str(n_layers),
        cheaper_models_temperature=str(temperature),
    )
    core, ids = bundled_model(FIRST_GPT2).core, ids_of()[0]
    with torch.inference_mode():
        states = core(ids[None], record=True).hidden_states
        lens = {depth: core.final_norm(states[depth][0]) @ core.unembedding for depth in (4, 6)}
    teacher, student = lens[6], lens[4]

    def divergence(temperature: float) -> torch.Tensor:
        logs = [(logits / temperature).log_softmax(-1) for logits in (student, teacher)]
        return kl_div(*logs, log_target=True, reduction="none").sum(-1) / math.log(2)

    curve, tokens = drawn_charts(site)
    layers = curve.layers[0]
    divergences = dict(zip(layers["layers"], layers["divergence"], strict=True))
    assert divergences[4] == pytest.approx(float(divergence(temperature)[:-1].mean()), rel=1e-3)
    assert divergences[6] == pytest.approx(0, abs=1e-5)
    bits = tokens.rows[tokens.rows["kind"] == distillation.DIVERGENCE]["bits"]
    np.testing.assert_allclose(bits, divergence(temperature)[:-1].numpy(), rtol=1e-3, atol=1e-3)
    entropy = torch.distributions.Categorical(
        logits=teacher[:-1] / temperature
    ).entropy() / math.log(2)
    shown_bits = tokens.rows[tokens.rows["kind"] == distillation.ENTROPY]["bits"]
    np.testing.assert_allclose(shown_bits, entropy.numpy(), rtol=1e-3, atol=1e-3)
    costs, table = plain_tables(site)[:2]
    n_less = 2 * sum(p.numel() for p in core.blocks[0].parameters())
    n_all = sum(p.numel() for p in core.parameters())
    assert costs["parameters"].tolist() == [
        f"{count / 1e6:,.1f} million" for count in (n_all, n_all - n_less)
    ]
    soft = student[:-1].softmax(-1) - teacher[:-1].softmax(-1)
    hard = student[:-1].softmax(-1)
    hard[torch.arange(len(hard)), ids[1:]] -= 1
    for column, gradient in ((distillation.SOFT, soft), (distillation.HARD, hard)):
        counts = (gradient.abs() > 1e-3).sum(-1)
        # One value is at the threshold.
        np.testing.assert_allclose(table[column], counts.numpy(), atol=1)
    agrees = int((teacher[:-1].argmax(-1) == student[:-1].argmax(-1)).sum())
    assert f"{agrees} of {len(ids) - 1}" in page_text(site, f"With {n_layers} layers")


@pytest.mark.parametrize("n_depths", [0, 4, 6])  # Number of depths (out of six) per product.
def test_curve_does_not_depend_on_the_batching_of_depths(
    monkeypatch: pytest.MonkeyPatch, n_depths: int
):
    run = runs.run(FIRST_GPT2, TEXT, MAX_CHEAPER_TOKENS, "this lesson")
    with torch.inference_mode():
        lens = [run.state(depth)[0].cpu() for depth in range(6, 0, -1)]
        core = bundled_model(FIRST_GPT2).core
        logs = [(core.final_norm(state) @ core.unembedding).log_softmax(-1) for state in lens]
        expected = [
            float(kl_div(logs_p, logs[0], log_target=True, reduction="none").sum(-1)[:-1].mean())
            for logs_p in logs
        ]
    monkeypatch.setattr(distillation, "N_ROWS", n_depths * len(run.tokens))
    curve = distillation.curve.__wrapped__(run, 1.0)
    assert curve["layers"].tolist() == [6, 5, 4, 3, 2, 1]
    in_nats = curve["divergence"].to_numpy() * math.log(2)
    np.testing.assert_allclose(in_nats, expected, rtol=1e-4, atol=1e-5)


# ---- the whole page


def test_single_token_has_no_next_token(site: AppTest):
    """Experts and continuations still work. Every other part explains what is missing."""
    open_whole_page(site, VIEW, cheaper_models_text="The")
    assert not site.exception
    assert len(messages(site)) == 2
    assert len(maps(site)) == 1


def test_encoder_generates_no_text(site: AppTest):
    open_page(site, VIEW, cheaper_models_model=ENCODER)
    assert not site.exception
    assert site.selectbox("cheaper_models_model").value == FIRST_GPT2


@pytest.mark.usefixtures("only_a_small_model")
def test_gpt2(site: AppTest):
    """GPT-2 has biases, no gate, and hidden units that 32 experts don't divide."""
    open_whole_page(site, VIEW, cheaper_models_text="Nine bells", cheaper_models_experts="32")
    assert not site.exception
    assert not messages(site)
    assert site.select_slider("cheaper_models_student_layers").value == 1
    site.select_slider("cheaper_models_kept").set_value(32).run()
    assert plain_tables(site)[0].iloc[0, 1] == "0.0%"


def test_first_repeated_token_is_named():
    def continuation(*ids: int) -> rewards.Continuation:
        return rewards.Continuation(ids, tuple(f"t{n}" for n in ids), "", "", -1.0)

    assert "t8" in rewards.first_repeat(continuation(8, 5, 8, 5))
    assert rewards.first_repeat(continuation(8, 5)) == "–"
