"""The Watch heads form page: stored runs, the user's own run and its training job."""

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.watch_heads_form import findings, job, live_chart, stored, watch
from pages.learn.watch_heads_form.experiment.model import Design
from pages.learn.watch_heads_form.experiment.training import HeadTraining
from pages.learn.watch_heads_form.job import RUN_BYTES, FormingJob, TrainingRun
from pages.learn.watch_heads_form.recording import (
    BLIND_GUESS,
    EVERY,
    TOKENS,
    Moment,
    TrainingHistory,
    TrainingSettings,
    moment,
)
from serving import compute
from serving.cache import size_of
from serving.jobs import JobQueue
from serving.limits import MAX_FORMING_STEPS
from tests.helpers.apptest import messages, open_page, open_whole_page, plain_tables
from tests.helpers.charts import drawn_charts
from tests.helpers.drawn_tensors import drawings
from tests.helpers.jobs import finish

VIEW = "pages/learn/watch_heads_form/page.py"
STEPS = 20  # Steps of a run in these tests.
PROMISED_BYTES = 200_000  # Size limit of the stored runs.


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(job, "MAX_FORMING_STEPS", STEPS)
    job.run.clear()
    yield
    job.run.clear()


def page_text(site: AppTest, words: str) -> str:
    (text,) = [element.value for element in site.markdown if words in element.value]
    return str(text)


def heatmap_data(site: AppTest) -> tuple[dict, np.ndarray]:
    """Header and weights (layers, H, T, T) of the drawing, with 0 in masked cells."""
    ((header, body),) = [candidate for candidate in drawings(site) if "scoreNames" in candidate[0]]
    codes = np.frombuffer(zlib.decompress(body), np.uint8)
    n, n_heads = len(header["labels"]), header["layers"] * header["heads"]
    weights = np.zeros((n_heads, n, n))
    visible = np.tril(np.ones((n, n), bool)) if header["causal"] else np.ones((n, n), bool)
    for head, of_head in enumerate(codes.reshape(n_heads, -1)):
        weights[head][visible] = header["largest"][head] * (of_head / header["levels"]) ** 2
    return header, weights.reshape(header["layers"], header["heads"], n, n)


def train(settings: TrainingSettings, n_steps: int) -> HeadTraining:
    """A run with the same settings, trained without the page."""
    design = Design(settings.n_heads, settings.mask, settings.scale, settings.dropout)
    training = HeadTraining(design, settings.seed)
    for _ in range(n_steps):
        training.step()
    return training


def current_job(site: AppTest) -> FormingJob:
    result = site.session_state["watch_heads_form_job"]
    assert isinstance(result, FormingJob)
    return result


def test_page_opens_on_a_run_where_heads_formed(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    assert stored.FILE.stat().st_size < PROMISED_BYTES
    recording = stored.stored().runs[stored.DEFAULT]
    last, drop = recording.moments[-1], recording.drop
    assert last.step == MAX_FORMING_STEPS
    assert drop is not None
    assert last.best_previous[1] > 0.5
    assert last.best_induction[1] > 0.5
    header, weights = heatmap_data(site)
    assert header["title"] == f"Stored run, after step {last.step}"
    assert header["scores"][:4] == pytest.approx(last.previous[0].tolist())
    assert header["scores"][4:] == pytest.approx(last.induction[1].tolist())
    np.testing.assert_allclose(weights.sum(-1), 1, atol=0.05)
    assert f"step {drop.step}" in page_text(site, "The loss dropped")
    losses, scores = drawn_charts(site)[:2]
    (rule,) = [rows for rows in losses.layers if list(rows) == ["step"]]
    assert rule["step"].tolist() == [drop.step]
    (lines,) = [rows for rows in losses.layers if "distances" in rows]
    assert set(lines["distances"]) == {live_chart.TRAINED, live_chart.UNSEEN}
    (lines,) = [rows for rows in scores.layers if "head" in rows]
    at_end = lines[lines["step"] == last.step].set_index("head")["value"]
    assert at_end[str(last.best_induction[0])] == pytest.approx(last.best_induction[1], abs=1e-3)
    before = recording.moments[recording.moments.index(drop) - 1]
    assert drop.loss_trained < BLIND_GUESS / 2 <= before.loss_trained


def test_each_switch_prevents_the_heads(site: AppTest):
    open_whole_page(site, VIEW)
    table = next(t for t in plain_tables(site) if "run" in t).set_index("run")
    assert table.loc["the same distance every time", "loss, trained"] < 0.5
    assert table.loc["the same distance every time", "loss, unseen"] > BLIND_GUESS
    assert table.loc["the same distance every time", "induction"] < 0.2
    assert table.loc["mask off", "loss, unseen"] < 0.1
    assert table.loc["mask off", "loss during generation"] > 1
    assert table.loc["scale off", "loss, unseen"] > BLIND_GUESS / 2
    usual, dropout = (
        table.loc[name, "loss dropped at step"] for name in (stored.DEFAULT, "dropout 0.5")
    )
    assert int(dropout) > int(usual)


def test_earlier_step_of_the_stored_run(site: AppTest):
    open_page(site, VIEW)
    (slider,) = [s for s in site.select_slider if s.label == "Maps after step"]
    slider.set_value("0").run()
    header, weights = heatmap_data(site)
    assert header["title"] == "Stored run, after step 0"
    expected = train(TrainingSettings(), 0).measure()
    np.testing.assert_allclose(weights, expected.maps.numpy(), atol=0.02)


def test_own_run_shows_its_model_tensors(site: AppTest):
    settings = TrainingSettings(n_heads=2, seed=9)
    open_page(site, VIEW, watch_heads_form_heads="2", watch_heads_form_seed="9")
    site.button("watch_heads_form_play").click().run()
    assert current_job(site).settings == settings
    finish(current_job(site))
    site.run()
    assert not site.exception
    expected = train(settings, STEPS).measure()
    header, weights = heatmap_data(site)
    assert header["title"] == f"Your run, after step {STEPS}"
    np.testing.assert_allclose(weights, expected.maps.numpy(), atol=0.02)
    assert header["scores"][:2] == pytest.approx(expected.previous[0].tolist(), abs=1e-4)
    assert header["scores"][2:] == pytest.approx(expected.induction[1].tolist(), abs=1e-4)
    losses = drawn_charts(site)[0]
    (lines,) = [rows for rows in losses.layers if "distances" in rows]
    unseen = lines[lines["distances"] == live_chart.UNSEEN].set_index("step")["value"]
    assert list(unseen.index) == list(range(0, STEPS + 1, EVERY))
    assert unseen[STEPS] == pytest.approx(expected.loss_unseen, abs=1e-3)
    # With the same settings, a finished run isn't continued.
    assert site.button("watch_heads_form_play").label == "Play"
    assert site.button("watch_heads_form_pause").disabled


def test_all_controls_affect_the_model(site: AppTest):
    open_page(site, VIEW)
    site.select_slider("watch_heads_form_heads").set_value(1)
    site.toggle("watch_heads_form_mask").set_value(False)
    site.toggle("watch_heads_form_scale").set_value(False)
    site.select_slider("watch_heads_form_dropout").set_value(0.2)
    site.number_input("watch_heads_form_seed").set_value(3)
    site.run()
    site.segmented_control("watch_heads_form_distances").set_value("The same every time").run()
    site.button("watch_heads_form_play").click().run()
    assert current_job(site).settings == TrainingSettings(1, 3, False, False, 0.2, True)
    finish(current_job(site))
    site.run()
    assert not site.exception
    header, _ = heatmap_data(site)
    assert not header["causal"]
    site.select_slider("watch_heads_form_heads").set_value(2).run()
    assert page_text(site, "You changed the settings")
    assert not site.button("watch_heads_form_play").disabled


def test_paused_run_resumes_unchanged(monkeypatch: pytest.MonkeyPatch):
    queue, settings = JobQueue(), TrainingSettings(n_heads=2, dropout=0.1)
    number = job.new_number()
    first = FormingJob(number, settings)
    real = TrainingRun.step

    def pausing(run: TrainingRun, check_stop: Callable[[], None]) -> None:
        real(run, check_stop)
        if run.n_steps == 7:
            first.stop()

    monkeypatch.setattr(TrainingRun, "step", pausing)
    queue.put(first)
    finish(first)
    assert first.state == "stopped"
    paused = job.run.peek(number)
    assert paused is not None
    assert paused.n_steps == 7
    second = FormingJob(number, settings)
    queue.put(second, replaces=first)
    finish(second)
    assert second.state == "done"
    assert paused.n_steps == STEPS
    straight = train(settings, STEPS).measure()
    assert [m.step for m in paused.recording.moments] == [0, 10, 20]
    assert paused.recording.moments[-1].loss_unseen == pytest.approx(straight.loss_unseen, abs=1e-6)


def test_pausing_on_the_page_frees_the_slot(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job, "MAX_FORMING_STEPS", 10**6)
    open_page(site, VIEW)
    site.button("watch_heads_form_play").click().run()
    mine = current_job(site)
    site.button("watch_heads_form_pause").click().run()
    assert not mine.is_live
    assert mine.finished.wait(60)
    assert site.button("watch_heads_form_pause").disabled
    # Another user's run starts while the first one is paused.
    monkeypatch.setattr(job, "MAX_FORMING_STEPS", STEPS)
    other = FormingJob(job.new_number(), TrainingSettings(n_heads=1))
    watch.TRAININGS.put(other)
    finish(other)
    assert other.state == "done"
    resume_button = site.button("watch_heads_form_again")
    assert not resume_button.disabled
    resume_button.click().run()
    assert current_job(site).number != mine.number
    finish(current_job(site))


def test_two_users_wait_at_most_one_step(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(job, "MAX_FORMING_STEPS", 10**6)
    queue = JobQueue()
    first, second = (FormingJob(job.new_number(), TrainingSettings(n_heads=1)) for _ in range(2))
    queue.put(first, owner="a")
    queue.put(second, owner="b")
    assert queue.n_ahead(second) == 1
    run = job.run(first.number, first.settings)
    for _ in range(3):  # A page that needs a forward pass gets a compute slot between two steps.
        with compute.slot():
            before = run.n_steps
        assert run.n_steps - before < 5
    assert first.is_live
    first.stop()
    assert queue.n_ahead(second) == 0
    assert first.finished.wait(60)
    second.stop()
    assert second.finished.wait(60)
    assert queue.length == 0


def test_run_memory_stays_within_its_estimate():
    settings = TrainingSettings(n_heads=8, mask=False)
    run = TrainingRun(settings)
    run.begin()
    for _ in range(EVERY):
        run.step()
    training = run._training
    assert training is not None
    weights = sum(parameter.nbytes for parameter in training.model.parameters())
    n_moments = MAX_FORMING_STEPS // EVERY + 1
    moments = n_moments * max(size_of(m) for m in run.recording.moments)
    assert 4 * weights + moments < RUN_BYTES  # One gradient and AdamW's two moments.


def test_expired_run(site: AppTest):
    open_page(site, VIEW, watch_heads_form_heads="1")
    site.button("watch_heads_form_play").click().run()
    finish(current_job(site))
    job.run.clear()
    site.run()
    assert not site.exception
    assert messages(site) == [watch.FORGOTTEN_NOTE]
    assert heatmap_data(site)[0]["title"].startswith("Stored run")


def test_full_queue_message(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "TRAININGS", JobQueue(max_waiting=0))
    open_page(site, VIEW)
    site.button("watch_heads_form_play").click().run()
    assert any("queue is full" in message for message in messages(site))
    assert "watch_heads_form_job" not in site.session_state
    assert heatmap_data(site)[0]["title"].startswith("Stored run")


def moments_of(settings: TrainingSettings, **changes: object) -> TrainingHistory:
    """A recording of two steps with these numbers."""
    first = moment(0, train(settings, 0).measure(), causal=settings.mask)
    return TrainingHistory(settings, [first, replace(first, step=50, **changes)])


def test_text_follows_the_numbers():
    usual = moments_of(TrainingSettings(n_heads=2), loss_trained=0.2, loss_unseen=0.3, right=0.91)
    assert "step 50" in findings.drop_sentence(usual)
    assert "91%" in findings.generalization_sentence(usual)
    trap = moments_of(
        TrainingSettings(n_heads=2, one_distance=True), loss_trained=0.0, loss_unseen=9.5
    )
    assert "9.50" in findings.generalization_sentence(trap)
    unmasked = moments_of(
        TrainingSettings(n_heads=2, mask=False),
        loss_trained=0.0,
        loss_unseen=0.0,
        loss_writing=4.25,
    )
    assert "4.25" in findings.generalization_sentence(unmasked)
    waiting = moments_of(TrainingSettings(n_heads=2), loss_trained=3.3)
    assert "at step" not in findings.drop_sentence(waiting)


def test_stored_runs_round_trip():
    run = TrainingRun(TrainingSettings(n_heads=2))
    run.begin()
    text = stored.to_json({"one": run.recording}, "a machine", "2026-01-02")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    restored = stored._recording(json.loads(text)["runs"]["one"])
    assert restored.settings == run.recording.settings
    (before,), (after,) = run.recording.moments, restored.moments
    assert isinstance(after, Moment)
    assert after.codes is not None
    assert before.codes is not None
    assert after.codes.deflated == before.codes.deflated
    assert after.loss_unseen == pytest.approx(before.loss_unseen, abs=1e-4)
    np.testing.assert_allclose(after.next, before.next, atol=1e-4)


def test_page_tokens_match_the_model():
    from pages.learn.watch_heads_form.experiment import sequences, training

    assert len(set(TOKENS)) == sequences.VOCABULARY
    assert pytest.approx(BLIND_GUESS) == training.BLIND_GUESS
    assert torch.equal(sequences.probe().ids, sequences.probe().ids)


def test_paused_run_records_nothing_until_resumed():
    class Paused(Exception):
        pass

    def pause() -> None:
        raise Paused

    run = TrainingRun(TrainingSettings(n_heads=2))
    with pytest.raises(Paused):
        run.begin(pause)
    assert run.recording.moments == []
    run.begin()
    for _ in range(EVERY - 1):
        run.step()
    with pytest.raises(Paused):
        run.step(pause)
    assert [m.step for m in run.recording.moments] == [0]
    run.begin()
    run.begin()
    run.step()
    assert [m.step for m in run.recording.moments] == [0, EVERY]
