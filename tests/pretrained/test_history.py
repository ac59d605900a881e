"""The histories of the models trained here: what is stored is attention, and damage is refused."""

import numpy as np
import pytest
import torch

from attention_core.analysis.head_statistics import STATISTICS, TextWeights
from pretrained import history as stored
from pretrained.history import LEVELS, LOSSES, NAMES, TEXT_SCORES, History, history, read

N, L, H, T = 3, 2, 5, 4


def arrays(*, causal: bool = True) -> dict[str, np.ndarray]:
    """What a small file holds, all sizes different."""
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


def file_of(tmp_path, **changes):
    """A file with these arrays in place of some; None leaves one out."""
    result = arrays() | changes
    path = tmp_path / "history.npz"
    np.savez_compressed(path, **{name: v for name, v in result.items() if v is not None})
    return path


def test_a_file_comes_back(tmp_path):
    result = read(file_of(tmp_path), "gpt2-novels")
    assert (result.n_layers, result.n_heads, result.causal) == (L, H, True)
    (probe,) = result.probes
    assert (probe.title, probe.text, probe.labels) == ("Short", "a b c d", tuple("abcd"))
    weights = probe.weights(1)
    assert weights.shape == (L, H, T, T)
    codes, largest = arrays()["codes_0"][1], arrays()["largest_0"][1]
    for place in ((0, 0, 0, 0), (1, 3, 2, 1), (1, 4, 3, 3)):
        expected = largest[place[:2]] * (int(codes[place]) / 255) ** 2
        assert weights[place] == pytest.approx(expected, rel=1e-5)
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
def test_a_file_that_does_not_fit_together(tmp_path, changes, message):
    with pytest.raises(ValueError, match=f"gpt2-novels.*{message}"):
        read(file_of(tmp_path, **changes), "gpt2-novels")


@pytest.mark.parametrize("keep", [0, 300, -100])
def test_a_file_that_is_cut_off_or_no_archive(tmp_path, keep):
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="is damaged"):
        read(path, "gpt2-novels")


def test_names_and_files_that_are_not_there(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"no training history"):
        history("../x")
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    history.cache_clear()
    assert stored.models_with_history() == ()
    assert history("gpt2-novels") is None
    history.cache_clear()


@pytest.fixture(params=NAMES)
def kept(request) -> History:
    result = history(request.param)
    assert result is not None
    assert history(request.param) is result  # read once
    return result


def test_the_stored_weights_are_attention(kept: History):
    assert kept.causal == (kept.name == "gpt2-novels")
    for probe in kept.probes:
        t = len(probe.ids)
        assert 20 <= t <= 32
        ahead = ~np.tril(np.ones((t, t), bool))
        for number in range(len(kept.steps)):
            weights = probe.weights(number)
            # half a step of the code, with either sign, for each of the keys
            steps = 2 * np.sqrt(weights * probe.largest[number][..., None, None])
            bound = (steps + 0.5 / LEVELS).sum(-1) / (2 * LEVELS)
            assert (np.abs(weights.sum(-1) - 1) <= bound + 1e-5).all()
            assert (weights[..., ahead] == 0).all() == kept.causal


def test_the_stored_scores_follow_from_the_stored_weights(kept: History):
    measures = {statistic.name: statistic.measure for statistic in STATISTICS}
    for probe in kept.probes:
        ids = torch.tensor(probe.ids)
        none_special = torch.zeros(len(ids), dtype=torch.bool)
        for number in (0, len(kept.steps) - 1):
            text = TextWeights(torch.tensor(probe.weights(number)), ids, none_special, kept.causal)
            for i, name in enumerate(TEXT_SCORES):
                measure = measures[name]
                assert measure is not None
                again, once = measure(text).numpy(), probe.scores[number, i]
                np.testing.assert_array_equal(np.isnan(again), np.isnan(once))
                np.testing.assert_allclose(again, once, atol=8 * probe.error)


def test_the_loss_fell_and_the_files_are_small(kept: History):
    assert kept.losses["held_out"][-1] < kept.losses["held_out"][0]
    assert kept.losses["held_out"][0] == pytest.approx(np.log(8192), abs=0.2)
    assert len(kept.curve["step"]) <= 100
    assert np.isfinite(kept.curve["train_loss"]).all()
    assert (stored.FOLDER / kept.name / stored.FILE).stat().st_size < 3_000_000
