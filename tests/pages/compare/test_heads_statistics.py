"""The statistics table of real models, and which keys count as noise."""

import numpy as np
import pytest
import torch

from attention_core.analysis.repeated_words import REPEATED_TOKENS, repeated_words
from pages.compare.heads import noise, statistics
from serving import runs
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model

TEXT = "The keeper said: the lamp, the lamp!"


def by_name(run: runs.Run, layer: int, head: int) -> dict[str, float]:
    table = statistics.table(run)
    row = table[(table["layer"] == layer) & (table["head"] == head)]
    assert len(row) == 1
    return {name: float(row[name].iloc[0]) for name in table.columns}


@pytest.mark.parametrize(("name", "layer", "head"), [(ENCODER, 4, 7), (DECODER, 21, 2)])
def test_table_matches_the_tensor(name: str, layer: int, head: int):
    run = runs.run(name, TEXT)
    assert len(statistics.table(run)) == run.weights.shape[0] * run.weights.shape[1]
    w = run.weights[layer, head].astype(float)
    result = by_name(run, layer, head)
    first = 1 if run.causal else 0  # The first query of a decoder attends only to itself.
    n = len(w)
    distance = [sum(w[i, j] * abs(i - j) for j in range(n)) for i in range(first, n)]
    assert result["distance"] == pytest.approx(np.mean(distance), abs=1e-5)
    assert result["first"] == pytest.approx(w[first:, 0].mean(), abs=1e-5)
    assert result["previous"] == pytest.approx(
        np.mean([w[i, i - 1] for i in range(1, n)]), abs=1e-5
    )
    bits = [-sum(x * np.log2(x) for x in row if x > 0) for row in w[first:]]
    assert result["entropy"] == pytest.approx(np.mean(bits), abs=1e-5)
    assert np.isnan(result["next"]) == run.causal
    assert np.isnan(result["special"]) == run.causal
    assert not np.isnan(result["same"])


def test_decoder_has_induction_heads_measured_once():
    scores = statistics.repeated_statistics(DECODER)
    assert scores["induction"].shape == (30, 9)
    # Induction heads copy from the context: a few score high and most don't.
    assert scores["induction"].max() > 0.5
    assert np.median(scores["induction"]) < 0.1
    assert statistics.repeated_statistics(ENCODER)["duplicate"].shape == (6, 12)
    second = statistics.repeated_statistics(DECODER)
    # The second call returns the cached measurement.
    assert np.shares_memory(second["induction"], scores["induction"])


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_repeated_words_are_not_noise(name: str):
    model = bundled_model(name)
    size = min(model.tokenizer.vocab_size, model.core.config.vocab_size)
    twice = repeated_words(size, model.tokenizer.decode, 500)
    assert twice is not None
    first, second = twice.view(2, REPEATED_TOKENS)
    assert torch.equal(first, second)
    assert len(set(first.tolist())) == REPEATED_TOKENS
    assert all(model.tokenizer.decode([i]).strip().isalpha() for i in first.tolist())
    shorter = repeated_words(size, model.tokenizer.decode, 15)
    assert shorter is not None
    assert len(shorter) == 14
    assert repeated_words(size, model.tokenizer.decode, 3) is None
    before, after = statistics._special_ids(model)
    around = [101], [102]
    assert (before, after) == (around if name == ENCODER else ([], []))


def test_noise_of_an_encoder():
    tokens = runs.run(ENCODER, TEXT).tokens
    entries = {
        kind: [tokens.pieces[i] for i in noise.positions_of_kind(tokens, kind)]
        for kind in noise.KINDS
    }
    assert entries == {
        noise.FIRST: ["[CLS]"],
        noise.CLS: ["[CLS]"],
        noise.SEP: ["[SEP]"],
        noise.PUNCTUATION: [":", ",", "!"],
    }
    assert noise.positions_of_kinds(tokens, [noise.CLS, noise.FIRST, noise.SEP]) == (
        0,
        len(tokens) - 1,
    )
    assert noise.positions_of_kinds(tokens, []) == ()


def test_noise_of_a_decoder():
    tokens = runs.run(DECODER, "[CLS] 5€ + naïve … don't 🙂 _").tokens
    labels = [
        tokens.text[slice(*tokens.spans[i])]
        for i in noise.positions_of_kind(tokens, noise.PUNCTUATION)
    ]
    assert noise.positions_of_kind(tokens, noise.FIRST) == (0,)
    assert (
        noise.positions_of_kind(tokens, noise.CLS)
        == noise.positions_of_kind(tokens, noise.SEP)
        == ()
    )
    assert "CLS" not in "".join(labels)
    assert " +" in labels
    assert " …" in labels
    assert not any(char.isalnum() for text in labels for char in text)
