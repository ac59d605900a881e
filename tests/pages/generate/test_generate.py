"""The generation job and its page: identical outputs, queue, stopping, limits."""

import dataclasses
import json
import math
import threading
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from attention_core import Sampling, generate
from pages.generate.generate import live
from pages.generate.generate.job import GenerationJob, submit
from pretrained import Pretrained
from serving import models, race, reduced_precision
from serving.interruptions import Heartbeat
from serving.jobs import JobQueue
from serving.limits import MAX_PROMPT_TOKENS, MAX_SEED, OverLimit
from serving.race import CacheSize, RaceRequest, RaceStep
from serving.step_times import StepTime
from tests.helpers.apptest import messages, open_page, plain_tables
from tests.helpers.bundled_models import DECODER, FIRST_GPT2
from tests.helpers.jobs import finish, watch_until

PAGE = "pages/generate/generate/page.py"
DEADLINE = 120.0


def request(
    n_new: int = 5, prompt: str = "The next day is bright", **options: object
) -> RaceRequest:
    return RaceRequest(DECODER, prompt, n_new, **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeout because a busy machine may stall for seconds."""
    monkeypatch.setattr(race, "Heartbeat", lambda: Heartbeat(shortest_seconds=math.inf))


@pytest.fixture
def queue() -> JobQueue:
    return JobQueue(max_waiting=3)


class BlockingJob:
    """A job that occupies the worker until it is released."""

    def __init__(self, queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running, self.release = threading.Event(), threading.Event()
        ordinary = GenerationJob.work

        def generate_when_released(job: GenerationJob) -> None:
            if job is self.job:
                self.running.set()
                assert self.release.wait(DEADLINE)
            ordinary(job)

        monkeypatch.setattr(GenerationJob, "work", generate_when_released)
        self.job: GenerationJob | None = None
        original_init = GenerationJob.__init__

        def remember_first(job: GenerationJob, race_request: RaceRequest) -> None:
            original_init(job, race_request)
            self.job = self.job or job

        monkeypatch.setattr(GenerationJob, "__init__", remember_first)
        submit(queue, request(1))
        assert self.running.wait(DEADLINE)


def test_both_runs_match_core_generation(queue: JobQueue):
    job = finish(submit(queue, request(6)))
    model = models.get(DECODER)
    ids = model.tokenizer.encode("The next day is bright").ids
    expected = generate(model.core, ids, max_new_tokens=6)
    assert job.state == "done"
    assert job.cached.token_ids == job.uncached.token_ids == expected
    assert job.text(job.cached) == model.tokenizer.decode(expected)
    assert job.largest_difference is not None
    assert 0 < job.largest_difference < 1e-3
    assert [step.n_new for step in job.cached.steps] == [len(ids), 1, 1, 1, 1, 1]
    assert job.cached.prefill_seconds == job.cached.steps[0].seconds
    assert job.speed_up == pytest.approx(job.uncached.seconds / job.cached.seconds)


def test_int8_job_matches_the_quantized_model(queue: JobQueue):
    race_request = request(6, weights="int8")
    job = finish(submit(queue, race_request))
    core = reduced_precision.load_int8(DECODER)
    ids = models.get(DECODER).tokenizer.encode(race_request.prompt).ids
    expected = generate(core, ids, max_new_tokens=6, cache=core.new_cache(1, len(ids) + 5))
    assert job.state == "done"
    assert job.cached.token_ids == expected
    assert job.device == f"{models.get(DECODER).device}, int8"


def test_16_bit_steps_use_graphs_with_the_same_samples(
    queue: JobQueue, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        reduced_precision, "has_gpu", lambda: True
    )  # Without a GPU, the same steps run without a graph.
    race_request = request(9, weights="bfloat16", temperature=1.1, seed=5)
    race_request = dataclasses.replace(race_request, model=FIRST_GPT2)
    job = finish(submit(queue, race_request))
    assert (job.state, job.error) == ("done", "")
    core, model = reduced_precision.load_bfloat16(FIRST_GPT2), models.get(FIRST_GPT2)
    assert {parameter.dtype for parameter in core.parameters()} == {torch.bfloat16}
    ids = model.tokenizer.encode(race_request.prompt).ids
    sampling = Sampling(1.1, seed=5)
    for run, cache in ((job.cached, core.new_cache(1, len(ids) + 8)), (job.uncached, None)):
        expected = generate(core, ids, max_new_tokens=9, cache=cache, sampling=sampling)
        assert run.token_ids == expected
    assert job.device == f"{model.device}, bfloat16"
    # Six layers, four heads of 64, 16 bits. The last new token isn't stored.
    assert job.cache_size == CacheSize(*[6 * 4 * 64 * (len(ids) + 8) * 2 * 2] * 2)


def test_16_bits_require_a_gpu(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: False)
    job = finish(submit(queue, request(2, weights="bfloat16")))
    assert job.state == "failed"
    assert "bfloat16 need a GPU" in job.error


def test_full_context_is_usable(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    model = models.get(DECODER)
    ids = model.tokenizer.encode("The next day is bright").ids
    config = dataclasses.replace(model.core.config, context_length=len(ids) + 3)
    monkeypatch.setattr(model.core, "config", config)
    job = finish(submit(queue, request(9)))
    assert (job.state, job.error) == ("done", "")
    # The last new token needs no position.
    assert len(job.cached.steps) == 4
    assert "4 new tokens" in job.notice


def test_comparison_covers_steps_that_both_runs_finished():
    job = GenerationJob(request())
    assert (job.same_tokens, job.speed_up) == (None, None)

    def step(token_id: int) -> StepTime:
        return StepTime("decode", token_id, 0.0, 0.5, 1, 1, 1, 1)

    job.uncached.steps.append(step(7))
    assert job.same_tokens is None
    job.cached.steps.append(step(7))
    # A prefill alone isn't enough to compare.
    assert (job.same_tokens, job.speed_up) == (True, None)
    job.uncached.steps.append(step(8))
    assert job.same_tokens is True
    job.cached.steps.append(step(9))
    assert (job.same_tokens, job.speed_up) == (False, 1.0)


def test_nan_difference_is_shown():
    job = GenerationJob(request())
    for other in (1.0, math.nan, 2.0):
        step = StepTime("decode", 1, 0.0, 0.1, 1, 1, 1, 1)
        job._store(RaceStep(step, step, other, CacheSize(8, 8)))
    assert job.largest_difference is not None
    assert math.isnan(job.largest_difference)


def test_job_stops_while_its_model_loads(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    loading, loaded = threading.Event(), threading.Event()
    original = models.get

    def get(name: str) -> Pretrained:
        loading.set()
        assert loaded.wait(DEADLINE)
        return original(name)

    monkeypatch.setattr(models, "get", get)
    job = submit(queue, request())
    assert loading.wait(DEADLINE)
    job.stop()
    assert (job.state, job.is_live) == ("stopped", False)
    after = submit(queue, request(1))
    assert queue.n_ahead(after) == 0  # The stopped job no longer blocks the queue.
    loaded.set()
    assert finish(job).state == "stopped"
    assert job.cached.steps == []
    assert finish(after).state == "done"


def test_full_queue_keeps_the_earlier_job(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    blocker = BlockingJob(queue, monkeypatch)
    first, second, third = (submit(queue, request(1)) for _ in range(3))
    assert [queue.n_ahead(job) for job in (first, second, third)] == [1, 2, 3]
    assert blocker.job is not None
    with pytest.raises(OverLimit, match="3 runs"):
        submit(queue, request(1), replaces=blocker.job)
    assert blocker.job.is_live
    # Replacing a job frees its own queue position.
    replacement = submit(queue, request(1), replaces=first)
    assert first.state == "stopped"
    assert [queue.n_ahead(job) for job in (second, third, replacement)] == [1, 2, 3]
    blocker.release.set()
    assert finish(replacement).state == "done"


def test_both_runs_sample_the_same_tokens(queue: JobQueue):
    options = {"temperature": 1.2, "top_k": 50, "top_p": 0.9}
    first = finish(submit(queue, request(8, seed=3, **options)))
    second = finish(submit(queue, request(8, seed=3, **options)))
    assert first.cached.token_ids == first.uncached.token_ids == second.cached.token_ids


def test_long_pass_stops_at_the_next_layer(queue: JobQueue):
    layers, inside = [], threading.Event()

    class RecordingJob(GenerationJob):
        def check_stop(self, layer: int = 0) -> None:
            layers.append(layer)
            if layer == 3:  # Request the stop during the pass over the prompt.
                inside.set()
            super().check_stop(layer)

    job = RecordingJob(request(200, prompt="many words " * 250))
    queue.put(job)
    watch_until(inside, job)
    job.stop()
    before = len(layers)
    assert finish(job).state == "stopped"
    # The layer that was starting when the stop was requested may still finish.
    assert len(layers) - before <= 1


def test_unwatched_job_ends(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("serving.jobs.UNWATCHED_SECONDS", 0.0)
    assert finish(submit(queue, request(200))).state == "stopped"


def test_failing_model_shows_message_and_queue_continues(
    queue: JobQueue, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(models, "get", lambda name: 1 / 0)
        assert "server log" in finish(submit(queue, request(1))).error
    assert finish(submit(queue, RaceRequest("no-such-model", "x", 1))).state == "failed"
    assert finish(submit(queue, request(1))).state == "done"


@pytest.mark.parametrize("n_new", [0, 201])
def test_token_count_is_limited(queue: JobQueue, n_new: int):
    with pytest.raises(OverLimit, match=f"not {n_new}"):
        submit(queue, request(n_new))


def test_too_long_and_empty_prompts(queue: JobQueue):
    for prompt, message in (("a " * MAX_PROMPT_TOKENS, "limit of 512"), ("", "type a word")):
        job = finish(submit(queue, request(1, prompt=prompt)))
        assert job.state == "failed"
        assert message in job.error


def run_job(site: AppTest) -> GenerationJob:
    site.button("generate_start").click().run()
    assert not site.exception
    job = site.session_state[live._JOB]
    finish(job)
    site.run()
    assert not site.exception
    return job


def race_data(site: AppTest) -> dict[str, Any]:
    """Data that the page sends to the race canvas."""
    sent = [element.proto for element in site.get("bidi_component")]
    [data] = [proto.bytes for proto in sent if b'"lanes"' in proto.bytes]
    race: dict[str, Any] = json.loads(data)
    return race


def assert_races(site: AppTest, job: GenerationJob) -> None:
    """Check that lanes contain the job's steps and texts end with the last step."""
    race = race_data(site)
    assert race["over"]
    assert race["prompt"] == job.request.prompt
    for lane, run in zip(race["lanes"], (job.cached, job.uncached), strict=True):
        assert lane["text"] == job.text(run)
        text_ends = [end for end, _, _ in lane["steps"]]
        assert text_ends == sorted(text_ends)
        assert text_ends[-1] == len(lane["text"])
        assert [tokens for _, _, tokens in lane["steps"]] == [step.n_new for step in run.steps]
        assert [milliseconds for _, milliseconds, _ in lane["steps"]] == pytest.approx(
            [1000 * step.seconds for step in run.steps], abs=1e-3
        )
    seconds = [sum(step.seconds for step in run.steps) for run in (job.cached, job.uncached)]
    assert f"{seconds[1] / seconds[0]:.2f} times" in race["verdict"]


def test_page_shows_the_measurements(site: AppTest):
    open_page(site, PAGE, generate_model=DECODER)
    before = race_data(site)
    assert not before["over"]
    assert [lane["steps"] for lane in before["lanes"]] == [[], []]
    site.slider("generate_tokens").set_value(4).run()
    job = run_job(site)
    metrics = {metric.label: metric.value for metric in site.metric}
    assert metrics["Total speed-up"] == f"{job.speed_up:.2f} ×"
    assert metrics["Largest logit difference"] == f"{job.largest_difference:.1e}"
    assert metrics["Same tokens"] == "yes"
    assert any(job.device in element.value for element in site.markdown)
    # Five prompt tokens and three new ones: 30 layers, 3 key/value heads of 64, float32.
    assert job.cache_size == CacheSize(*[30 * 3 * 64 * (5 + 3) * 2 * 4] * 2)
    assert metrics["Cache size"] == "0.37 MB"
    assert_races(site, job)
    assert site.button("generate_stop").disabled
    steps = site.dataframe[0].value
    assert len(steps) == 8
    assert list(steps["token id"][:4]) == job.cached.token_ids
    assert list(steps["kind"][:4]) == ["prefill", "decode", "decode", "decode"]


def test_int8_cost_next_to_run(site: AppTest):
    open_page(site, PAGE, generate_model=DECODER)
    site.button_group("generate_weights").set_value("int8").run()
    site.slider("generate_tokens").set_value(2).run()
    assert run_job(site).request.weights == "int8"
    price = reduced_precision.precision_cost(DECODER, "int8")
    [message] = [e.value for e in site.markdown if e.value.startswith("**The cost of int8**")]
    assert f"**{price.n_equal} of {price.n_tokens}**" in message
    assert f"**{price.largest_difference:.2g}**" in message
    [table] = [table for table in plain_tables(site) if "perplexity" in table]
    assert [*table["weights"]] == ["float32", "int8"]
    perplexities = [price.perplexity, price.perplexity_rounded]
    assert [*table["perplexity"]] == pytest.approx(perplexities, abs=6e-4)
    megabytes = [price.n_bytes / 1e6, price.n_bytes_rounded / 1e6]
    assert [*table["stored, MB"]] == pytest.approx(megabytes, abs=0.06)


def test_16_bits_are_offered_with_a_gpu(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: False)
    open_page(site, PAGE, generate_model=FIRST_GPT2, generate_weights="bfloat16")
    assert site.toast  # The link requests an option that isn't available.
    assert site.button_group("generate_weights").value == "float32"
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: True)
    site.run()
    site.button_group("generate_weights").set_value("bfloat16").run()
    assert not site.exception
    assert site.button_group("generate_weights").value == "bfloat16"


def test_new_run_replaces_the_old_one(site: AppTest):
    open_page(site, PAGE)
    site.slider("generate_tokens").set_value(200).run()
    site.button("generate_start").click().run()
    first = site.session_state[live._JOB]
    site.slider("generate_tokens").set_value(1).run()
    second = run_job(site)
    assert finish(first).state == "stopped"
    assert second.state == "done"


def test_too_long_prompt_shows_message_and_is_kept(site: AppTest):
    prompt = "a " * 600
    open_page(site, PAGE)
    site.text_input("generate_prompt").set_value(prompt).run()
    run_job(site)
    assert any("limit of 512" in m for m in messages(site))
    assert race_data(site)["steps"] == 40  # The lanes are empty because nothing was generated.
    assert site.text_input("generate_prompt").value == prompt


def test_controls_at_their_extremes(site: AppTest):
    open_page(site, PAGE)
    site.slider("generate_tokens").set_value(1)
    assert site.slider("generate_top_k").disabled
    site.slider("generate_temperature").set_value(2.0).run()
    site.slider("generate_top_k").set_value(200)
    site.slider("generate_top_p").set_value(0.05)
    site.number_input("generate_seed").set_value(MAX_SEED).run()
    assert run_job(site).state == "done"


def test_model_text_is_never_markdown(site: AppTest):
    prompt = "# <b>loud</b> ![x](http://example.invalid/x.png)"
    open_page(site, PAGE, generate_prompt=prompt, generate_tokens="1")
    run_job(site)
    assert race_data(site)["prompt"] == prompt
    assert not any("example.invalid" in element.value for element in site.markdown)
