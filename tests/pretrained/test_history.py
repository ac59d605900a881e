"""Training histories: stored weights are valid attention, and damaged files are rejected."""

import numpy as np
import pytest
import torch

from attention_core.analysis.head_statistics import STATISTICS, TextWeights
from pretrained import history as stored
from pretrained.history import LEVELS, LOSSES, NAMES, TEXT_SCORES, History, history, read

N, L, H, T = 3, 2, 5, 4


def arrays(*, causal: bool = True) -> dict[str, np.ndarray]:
    """Return the contents of a small file whose sizes all differ."""
    rng = np.random.default_rng(0)
    weights = rng.random((N, L, H, T, T)).astype(np.float32)
    if causal:
        weights *= np.tril(np.ones((T, T), np.float32))
    weights /= weights.sum(-1, keepdims=True)
    largest = weights.max(axis=(-1, -2))
    return {
        "causal": np.array(causal),
        "steps": np.array([0, 50, 700]),
        "tokens": np.array([0, 500, 7000]),
        "text_lengths": np.array([[0, 64]]),
        "titles": np.array(["Short"]),
        "texts": np.array(["a b c d"]),
        "ids_0": np.arange(T),
        "labels_0": np.array(["a", "b", "c", "d"]),
        "codes_0": np.rint(LEVELS * np.sqrt(weights / largest[..., None, None])).astype(np.uint8),
        "largest_0": largest,
        "scores_0": rng.random((N, len(TEXT_SCORES), L, H)).astype(np.float32),
        "said_twice": rng.random((N, 2, L, H)).astype(np.float32),
        "curve_step": np.array([20, 40]),
        "curve_train_loss": np.array([9.0, 8.0], np.float32),
        "curve_held_out_loss": np.array([np.nan, 8.5], np.float32),
        **{f"loss_{name}": np.full(N, 5, np.float32) for name in LOSSES},
    }


def save_file(tmp_path, **changes):
    """Save a file with some arrays replaced; None leaves an array out."""
    result = arrays() | changes
    path = tmp_path / "history.npz"
    np.savez_compressed(path, **{name: v for name, v in result.items() if v is not None})
    return path


def test_read_returns_the_saved_values(tmp_path):
    result = read(save_file(tmp_path), "gpt2-novels")
    assert (result.n_layers, result.n_heads, result.causal) == (L, H, True)
    (probe,) = result.probes
    assert (probe.title, probe.text, probe.labels) == ("Short", "a b c d", tuple("abcd"))
    weights = probe.weights(1)
    assert weights.shape == (L, H, T, T)
    codes, largest = arrays()["codes_0"][1], arrays()["largest_0"][1]
    for index in ((0, 0, 0, 0), (1, 3, 2, 1), (1, 4, 3, 3)):
        expected = largest[index[:2]] * (int(codes[index]) / 255) ** 2
        assert weights[index] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="read-only"):
        result.repeated_scores[0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": None}, "steps"),
        ({"steps": np.array([0, 50, 50])}, ""),
        ({"tokens": np.array([0, 1])}, r"tokens.*\(3,\).*\(2,\)"),
        ({"codes_0": np.zeros((N, L, H, T, T + 1), np.uint8)}, r"codes_0 .* \(3, 2, 5, 4, 5\)"),
        ({"codes_0": np.zeros((N, L, H, T, T), np.uint16)}, "8-bit"),
        ({"largest_0": np.full((N, L, H), np.nan, "f4")}, "8-bit"),
        ({"labels_0": np.array(["a", "b", "a", "d"])}, ""),
        ({"titles": np.array([], "U1"), "texts": np.array([], "U1")}, "no text"),
    ],
)
def test_rejects_inconsistent_files(tmp_path, changes, message):
    with pytest.raises(ValueError, match=f"gpt2-novels.*{message}"):
        read(save_file(tmp_path, **changes), "gpt2-novels")


@pytest.mark.parametrize("keep", [0, 300, -100])
def test_rejects_truncated_files(tmp_path, keep):
    path = save_file(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="is damaged"):
        read(path, "gpt2-novels")


def test_missing_names_and_files(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"no training history"):
        history("../x")
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    history.cache_clear()
    assert stored.models_with_history() == ()
    assert history("gpt2-novels") is None
    history.cache_clear()


@pytest.fixture(params=NAMES)
def saved_history(request) -> History:
    result = history(request.param)
    assert result is not None
    assert history(request.param) is result  # cached
    return result


def test_stored_weights_are_attention(saved_history: History):
    assert saved_history.causal == (saved_history.name == "gpt2-novels")
    for probe in saved_history.probes:
        t = len(probe.ids)
        assert 20 <= t <= 32
        is_future = ~np.tril(np.ones((t, t), bool))
        for number in range(len(saved_history.steps)):
            weights = probe.weights(number)
            # each key contributes a rounding error of at most half a code step
            steps = 2 * np.sqrt(weights * probe.largest[number][..., None, None])
            bound = (steps + 0.5 / LEVELS).sum(-1) / (2 * LEVELS)
            assert (np.abs(weights.sum(-1) - 1) <= bound + 1e-5).all()
            assert (weights[..., is_future] == 0).all() == saved_history.causal


def test_stored_scores_match_the_stored_weights(saved_history: History):
    measures = {statistic.name: statistic.measure for statistic in STATISTICS}
    for probe in saved_history.probes:
        ids = torch.tensor(probe.ids)
        none_special = torch.zeros(len(ids), dtype=torch.bool)
        for number in (0, len(saved_history.steps) - 1):
            text = TextWeights(
                torch.tensor(probe.weights(number)), ids, none_special, saved_history.causal
            )
            for i, name in enumerate(TEXT_SCORES):
                measure = measures[name]
                assert measure is not None
                computed, stored_scores = measure(text).numpy(), probe.scores[number, i]
                np.testing.assert_array_equal(np.isnan(computed), np.isnan(stored_scores))
                np.testing.assert_allclose(computed, stored_scores, atol=8 * probe.error)


def test_loss_decreased_and_files_are_small(saved_history: History):
    assert saved_history.losses["held_out"][-1] < saved_history.losses["held_out"][0]
    assert saved_history.losses["held_out"][0] == pytest.approx(np.log(8192), abs=0.2)
    assert len(saved_history.curve["step"]) <= 100
    assert np.isfinite(saved_history.curve["train_loss"]).all()
    assert (stored.FOLDER / saved_history.name / stored.FILE).stat().st_size < 3_000_000
