"""Watch heads form: the sequences, the two-layer model and the measurements."""

import pytest
import torch

from attention_core.seeding import seeded
from pages.learn.watch_heads_form.experiment import training
from pages.learn.watch_heads_form.experiment.model import WIDTH, AttentionOnly, Design
from pages.learn.watch_heads_form.experiment.sequences import (
    LENGTH,
    ONE_DISTANCE,
    TRAINED_DISTANCES,
    UNSEEN_DISTANCES,
    VOCABULARY,
    Repeats,
    draw,
    probe,
)
from pages.learn.watch_heads_form.experiment.training import HeadTraining, repeat_losses


@pytest.fixture(autouse=True)
def _one_thread():
    """Use one thread: with such small operations, two would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def sample_repeats(n_sequences: int, distances: tuple[int, ...], seed: int = 7) -> Repeats:
    return draw(n_sequences, distances, torch.Generator().manual_seed(seed))


def repeat_ends(repeats: Repeats) -> list[tuple[int, int, int]]:
    """The distance and the first and last position of each sequence's repeat."""
    pairs = zip(repeats.distances.tolist(), repeats.starts.tolist(), strict=True)
    return [(n, start + n, start + 2 * n - 1) for n, start in pairs]


def test_segment_repeats_at_varying_distance_and_position():
    repeats = sample_repeats(300, TRAINED_DISTANCES)
    assert repeats.ids.shape == (300, LENGTH)
    for ids, (n, begin, last) in zip(repeats.ids.tolist(), repeat_ends(repeats), strict=True):
        assert last < LENGTH
        assert ids[begin : last + 1] == ids[begin - n : begin]
    assert set(repeats.distances.tolist()) == set(TRAINED_DISTANCES)
    assert repeats.starts.min() == 0
    starts_at_7 = [s for n, s in zip(repeats.distances, repeats.starts, strict=True) if n == 7]
    assert len({int(start) for start in starts_at_7}) > 10
    assert repeats.ids.unique().numel() == VOCABULARY


def test_loss_counts_predictions_of_the_repeat():
    repeats = sample_repeats(20, (3, 5))
    for row, (n, begin, last) in zip(repeats.predictable, repeat_ends(repeats), strict=True):
        assert row.nonzero().flatten().tolist() == list(range(begin, last))
        assert int(row.sum()) == n - 1


def test_probe_has_one_answer_and_an_unseen_distance():
    repeats = probe()
    n, start = int(repeats.distances), int(repeats.starts)
    assert n in UNSEEN_DISTANCES
    ids = repeats.ids[0].tolist()
    assert ids[start : start + n] == ids[start + n : start + 2 * n]
    others = ids[: start + n] + ids[start + 2 * n :]
    assert len(set(others)) == len(others)


def test_training_never_uses_an_unseen_distance(monkeypatch: pytest.MonkeyPatch):
    visible: list[Repeats] = []

    def recording_losses(logits: torch.Tensor, repeats: Repeats) -> torch.Tensor:
        visible.append(repeats)
        return repeat_losses(logits, repeats)

    monkeypatch.setattr(training, "repeat_losses", recording_losses)
    run = HeadTraining(Design(2), 3)
    for _ in range(12):
        run.step()
    distances = torch.cat([repeats.distances for repeats in visible])
    assert len(distances) == 12 * training.BATCH
    assert not set(distances.tolist()) & set(UNSEEN_DISTANCES)
    assert len(set(distances.tolist())) > 8
    # Measurements use only unseen distances.
    assert set(run._unseen.distances.tolist()) <= set(UNSEEN_DISTANCES)
    assert not set(TRAINED_DISTANCES + ONE_DISTANCE) & set(UNSEEN_DISTANCES)
    trap = HeadTraining(Design(2), 3, distances=ONE_DISTANCE)
    assert set(trap._trained.distances.tolist()) == set(ONE_DISTANCE)
    with pytest.raises(ValueError, match=r"\[9, 21\] are reserved for the test"):
        HeadTraining(Design(2), 3, distances=(8, 9, 21))


def model(design: Design) -> AttentionOnly:
    with seeded(1):
        return AttentionOnly(11, design).eval()


def test_shapes_and_weighted_values():
    ids = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits, records = model(Design(4))(ids)
    assert logits.shape == (3, 7, 11)
    assert len(records) == 2
    for record in records:
        assert record.weights.shape == (3, 4, 7, 7)
        assert record.v.shape == (3, 4, 7, WIDTH // 4)
        torch.testing.assert_close(record.weights.sum(-1), torch.ones(3, 4, 7))
        assert record.scale == pytest.approx((WIDTH / 4) ** -0.5)
    assert model(Design(4, scaled=False))(ids)[1][0].scale == 1.0


@pytest.mark.parametrize("causal", [True, False])
def test_only_the_mask_hides_later_tokens(causal: bool):
    ids = torch.arange(9)[None] % 11
    changed = ids.clone()
    changed[0, 6] = 10
    net = model(Design(2, causal=causal))
    with torch.no_grad():
        before, after = net(ids)[0], net(changed)[0]
        masked = net(ids, causal=True)[0], net(changed, causal=True)[0]
    assert torch.allclose(before[0, :6], after[0, :6]) == causal
    assert not torch.allclose(before[0, 6:], after[0, 6:])
    torch.testing.assert_close(masked[0][0, :6], masked[1][0, :6])


def test_scores_and_losses_match_a_loop_over_cells():
    run = HeadTraining(Design(2), 5)
    result = run.measure()
    repeats = run._unseen
    with torch.no_grad():
        logits, records = run.model(repeats.ids)
    log_probabilities = logits.log_softmax(-1)
    losses, right = [], []
    for layer, record in enumerate(records):
        for head in range(2):
            previous, induction = [], []
            for b, (n, begin, last) in enumerate(repeat_ends(repeats)):
                weights = record.weights[b, head]
                cells = [float(weights[i, i - n + 1]) for i in range(begin, last + 1)]
                induction.append(sum(cells) / len(cells))
                cells = [float(weights[i, i - 1]) for i in range(1, LENGTH)]
                previous.append(sum(cells) / len(cells))
            mean = sum(induction) / len(induction)
            assert float(result.induction[layer, head]) == pytest.approx(mean, abs=1e-5)
            mean = sum(previous) / len(previous)
            assert float(result.previous[layer, head]) == pytest.approx(mean, abs=1e-5)
    for b, (_, begin, last) in enumerate(repeat_ends(repeats)):
        for position in range(begin, last):
            token = int(repeats.ids[b, position + 1])
            losses.append(-float(log_probabilities[b, position, token]))
            right.append(int(logits[b, position].argmax()) == token)
    assert result.loss_unseen == pytest.approx(sum(losses) / len(losses), abs=1e-4)
    assert result.right == pytest.approx(sum(right) / len(right), abs=1e-6)
    assert result.loss_writing == result.loss_unseen
    assert result.next.isnan().all()
    with torch.no_grad():
        _, records = run.model(probe().ids)
    torch.testing.assert_close(result.maps[1], records[1].weights[0])


def test_seed_reproduces_the_run_including_dropout():
    def losses(seed: int, dropout: float) -> list[float]:
        run = HeadTraining(Design(2, dropout=dropout), seed)
        return [run.step() for _ in range(2)]

    first = losses(4, 0.5)
    assert first == losses(4, 0.5)
    assert first != losses(4, 0.0)
    assert first != losses(5, 0.5)


def test_heads_form_and_generalize_to_unseen_distances():
    """Use the smallest setting, one head per layer."""
    run = HeadTraining(Design(1), 0)
    before = run.measure()
    assert before.loss_unseen > training.BLIND_GUESS - 0.5
    while run.n_steps < 200:
        run.step()
    after = run.measure()
    assert after.previous[0].max() > 0.5
    assert after.induction[1].max() > 0.5
    assert after.loss_unseen < training.BLIND_GUESS / 2
    assert after.right > 0.8
