"""A run learns, and an interrupted run resumes with identical results."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from attention_core import Transformer, bert_config, gpt2_config
from training import run as run_module
from training.corpus import Corpus
from training.loss import losses
from training.models import LanguageModel
from training.recipe import Recipe
from training.run import PretrainingRun, read_curve, snapshot_steps

V, MASK_ID, N_TOKENS = 53, 52, 51
SIZES = {"d_model": 24, "n_layers": 2, "n_heads": 3, "vocab_size": V, "context_length": 80}
MODELS = {"gpt2": gpt2_config(**SIZES), "bert": bert_config(**SIZES, n_segments=1)}


def books() -> Corpus:
    """Return tokens that depend on the previous token 80% of the time."""
    generator = np.random.default_rng(0)
    ids = [0]
    for surprise in generator.random(6000):
        ids.append(
            int(generator.integers(N_TOKENS)) if surprise < 0.2 else ids[-1] * 7 % N_TOKENS + 1
        )
    ids = np.array(ids, dtype=np.uint16) % N_TOKENS
    return Corpus(ids[:5000], ids[5000:])


def small_recipe(kind: str, **changes) -> Recipe:
    sizes = {"lengths": ((0.0, 16), (0.5, 80)), "tokens_per_step": 480, "tokens_per_part": 240}
    return Recipe(
        MODELS[kind], **{"steps": 24, "warmup": 4, "rate": 1e-2, "masked": 0.4} | sizes | changes
    )


def start_run(kind: str, folder, **changes) -> PretrainingRun:
    return PretrainingRun(
        small_recipe(kind, **changes), books(), folder, n_tokens=N_TOKENS, mask_id=MASK_ID
    )


@pytest.fixture(autouse=True)
def _frequent_logging(monkeypatch):
    monkeypatch.setattr(run_module, "CURVE_EVERY", 4)
    monkeypatch.setattr(run_module, "HELD_OUT_EVERY", 8)
    monkeypatch.setattr(run_module, "SAVE_EVERY", 5)
    monkeypatch.setattr(run_module, "_HELD_OUT_TEXTS", 6)


@pytest.mark.parametrize("kind", MODELS)
def test_resumed_run_gives_the_same_curve(kind, tmp_path):
    whole = start_run(kind, tmp_path / "whole")
    whole.train()
    killed = start_run(kind, tmp_path / "killed")
    # past step 12, whose line in the curve is newer than the checkpoint at step 10
    for _ in range(13):
        killed.losses.append(killed.take_step())
        if killed.step % 4 == 0:
            killed._write_line()
        if killed.step % 5 == 0:
            killed._save_checkpoint()
    del killed
    resumed = start_run(kind, tmp_path / "killed")
    assert resumed.step == 10
    resumed.train()
    assert read_curve(tmp_path / "killed") == read_curve(tmp_path / "whole")
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name
    assert [line["step"] for line in read_curve(tmp_path / "whole")] == [
        *"48",
        *map(str, (12, 16, 20, 24)),
    ]


def test_small_run_learns_more_than_token_frequencies(tmp_path):
    run = start_run("gpt2", tmp_path, steps=120)
    run.train()
    last = read_curve(tmp_path)[-1]
    assert float(last["held_out_loss"]) < 0.8 * run.unigram_entropy()
    assert float(last["loss_at_40"]) > 0
    assert last["loss_at_400"] == ""  # texts are too short
    assert run.unigram_entropy() < math.log(N_TOKENS)
    saved_steps = {int(file.stem) for file in (tmp_path / "snapshots").iterdir()}
    assert saved_steps == set(snapshot_steps(120))
    stored = load_file(tmp_path / "snapshots" / "120.safetensors")
    assert stored.keys() == run.model.state_dict().keys()


@pytest.mark.parametrize("kind", MODELS)
def test_training_attention_equals_the_core(kind):
    model = LanguageModel(MODELS[kind], dropout=0.5).eval()
    core = Transformer(MODELS[kind])
    core.load_state_dict(model.core.state_dict())
    texts = torch.randint(0, V, (3, 37), generator=torch.Generator().manual_seed(0))
    assert_close(model.states(texts), core(texts).hidden, atol=1e-5, rtol=1e-5)
    assert not torch.equal(model.train().states(texts), model.states(texts))  # dropout


def test_chunked_loss_equals_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    states, weight = (
        torch.randn(150, 24, generator=generator),
        torch.randn(24, V, generator=generator),
    )
    targets = torch.randint(0, V, (150,), generator=generator)
    scale = torch.rand(150, generator=generator)
    results = []
    for function in (
        lambda a, b: losses(a, b, targets, torch.float32),
        lambda a, b: torch.nn.functional.cross_entropy(a @ b, targets, reduction="none"),
    ):
        a, b = states.clone().requires_grad_(), weight.clone().requires_grad_()
        loss = function(a, b)
        (loss * scale).sum().backward()
        results.append((loss.detach(), a.grad, b.grad))
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": ((0.0, 96),)}, "96.*80"),
        ({"lengths": ((0.0, 50),)}, "240.*50"),
        ({"tokens_per_step": 500}, "500.*240"),
    ],
)
def test_rejects_invalid_recipes(changes, message):
    with pytest.raises(ValueError, match=message):
        small_recipe("gpt2", **changes)
