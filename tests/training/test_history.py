"""The training history matches the run's snapshots."""

import os

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.torch import load_file
from torch.nn.functional import log_softmax

from attention_core import Transformer, bert_config, gpt2_config
from pretrained.history import History, read
from pretrained.tokenization.bpe import FastBpe
from training import history
from training.batches import windows
from training.corpus import Corpus
from training.models import LanguageModel
from training.recipe import Recipe
from training.run import PretrainingRun, read_curve
from training.vocabulary import build_tokenizer, special_ids

SIZES = {"d_model": 24, "n_layers": 2, "n_heads": 3, "vocab_size": 261, "context_length": 430}
MODELS = {"gpt2": gpt2_config(**SIZES), "bert": bert_config(**SIZES, n_segments=1)}
TEXTS = {"Twice": "the cat the cat", "Once": "a dog runs"}


def corpus() -> Corpus:
    ids = np.random.default_rng(3).integers(0, 256, 5000).astype(np.uint16)
    return Corpus(ids[:3000], ids[3000:])


@pytest.fixture(scope="module", params=MODELS)
def run_and_history(request, tmp_path_factory) -> tuple[str, PretrainingRun, History]:
    """Train a short run on random books, and read its history file."""
    folder = tmp_path_factory.mktemp("run")
    tokenizer = build_tokenizer([("t", "h"), ("th", "e"), ("Ġ", "the")], ["the the"], size=261)
    n_tokens, mask_id = special_ids(tokenizer)
    recipe = Recipe(
        MODELS[request.param],
        steps=4,
        lengths=((0.0, 64), (0.5, 320)),
        tokens_per_step=640,
        tokens_per_part=320,
        bfloat16=False,
    )
    patch = pytest.MonkeyPatch()
    patch.setattr("training.run.CURVE_EVERY", 1)
    patch.setattr("training.run.HELD_OUT_EVERY", 2)
    patch.setattr("training.run._HELD_OUT_TEXTS", 3)
    patch.setattr(history, "_CONTEXT_TEXTS", 5)
    run = PretrainingRun(recipe, corpus(), folder, n_tokens=n_tokens, mask_id=mask_id)
    with torch.no_grad():  # make attention far from uniform
        for name, weight in run.model.named_parameters():
            if name.endswith("qkv.weight"):
                weight *= 4
    run.train()
    another = PretrainingRun(
        recipe, corpus(), folder / "another", n_tokens=n_tokens, mask_id=mask_id
    )
    result = history.arrays(
        folder, recipe, FastBpe(tokenizer), history.held_out_losses(another), TEXTS
    )
    np.savez_compressed(folder / "history.npz", allow_pickle=False, **result)
    patch.undo()
    return request.param, run, read(folder / "history.npz", request.param)


def core(run: PretrainingRun, step: int) -> Transformer:
    """Load the model of a snapshot, as the run does."""
    model = LanguageModel(run.recipe.model)
    state = load_file(run.folder / "snapshots" / f"{step}.safetensors")
    model.load_state_dict({name: weight.float() for name, weight in state.items()})
    plain = Transformer(run.recipe.model)
    plain.load_state_dict(model.core.state_dict())
    return plain.eval()


def test_steps_tokens_and_lengths(run_and_history):
    kind, run, result = run_and_history
    assert result.steps.tolist() == [0, 4]
    assert result.tokens.tolist() == [0, 4 * 640]
    assert result.text_lengths.tolist() == [[0, 64], [2, 320]]
    assert result.causal == (kind == "gpt2")
    assert (result.n_layers, result.n_heads) == (2, 3)
    assert [(probe.title, probe.text) for probe in result.probes] == list(TEXTS.items())


@pytest.mark.parametrize("number", [0, 1])
def test_weights_match_the_snapshot_up_to_rounding(run_and_history, number):
    _, run, result = run_and_history
    model = core(run, result.steps[number])
    for probe in result.probes:
        with torch.inference_mode():
            records = model(torch.tensor(probe.ids)[None].long(), record=True).records
        expected = np.stack([record.weights[0].numpy() for record in records])
        errors = np.abs(probe.weights(number) - expected)
        assert 0 < errors.max() <= probe.error * (1 + 1e-5)
        t = len(probe.ids)
        previous = np.mean([expected[:, :, i, i - 1] for i in range(1, t)], axis=0)
        assert_allclose(probe.scores[number, 0], previous, atol=1e-5)
        first = 1 if result.causal else 0
        assert_allclose(probe.scores[number, 2], expected[:, :, first:, 0].mean(-1), atol=1e-5)
        assert np.isnan(probe.scores[number, 1]).all() == result.causal


def test_held_out_loss_matches_the_run(run_and_history):
    _, run, result = run_and_history
    last = read_curve(run.folder)[-1]
    # snapshots are stored in float16
    assert result.losses["held_out"][1] == pytest.approx(float(last["held_out_loss"]), abs=2e-3)
    assert result.curve["step"].tolist() == [1, 2, 3, 4]
    assert_array_equal(np.isnan(result.curve["held_out_loss"]), [True, False, True, False])
    assert result.curve["train_loss"][3] == pytest.approx(float(last["train_loss"]))


def test_loss_after_contexts_of_different_lengths(run_and_history):
    kind, run, result = run_and_history
    after = {before: result.losses[f"after_{before}"] for before in (40, 200, 400)}
    if kind == "bert":
        assert np.isnan(list(after.values())).all()
        return
    # training texts had 320 tokens after the first snapshot, and never more
    assert_array_equal(np.isnan(after[40]), [False, False])
    assert_array_equal(np.isnan(after[200]), [True, False])
    assert np.isnan(after[400]).all()
    model = core(run, 4)
    texts = windows(run.corpus.held_out, 5, 421, seed=(history._CONTEXT_SEED,))
    for before in (40, 200):
        losses = []
        for text in texts:
            start = 400 - before
            with torch.inference_mode():
                logits = model(text[None, start:420]).logits[0]
            for position in range(381, 421):
                row = log_softmax(logits[position - 1 - start].double(), dim=-1)
                losses.append(-row[text[position]].item())
        assert after[before][1] == pytest.approx(np.mean(losses), abs=1e-4)


def test_ignores_snapshots_of_an_earlier_run(tmp_path):
    folder = tmp_path / "snapshots"
    folder.mkdir()
    for step, written in ((0, 100), (50, 200), (81, 150), (124, 300), (200, 189), (305, 299)):
        file = folder / f"{step}.safetensors"
        file.touch()
        os.utime(file, (written, written))
    assert list(history.snapshots(tmp_path)) == [0, 50, 124, 305]
