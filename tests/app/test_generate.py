"""The generation job and its page: equal runs, the queue, stopping, limits."""

import threading
import time

import pytest
from streamlit.testing.v1 import AppTest

from attention_core import generate
from tests.app.conftest import messages, open_page
from ui import live, models
from ui.charts import CACHED, UNCACHED, time_per_token
from ui.generation import Job, JobQueue, Request, Stopped
from ui.limits import MAX_PROMPT_TOKENS, OverLimit

PAGE = "views/generate/generate.py"
MODEL = "smollm2-135m-instruct"
DEADLINE = 120.0


def request(n_new: int = 5, prompt: str = "The next day is bright", **options: object) -> Request:
    return Request(MODEL, prompt, n_new, **options)  # type: ignore[arg-type]


def finish(job: Job) -> Job:
    assert job.finished.wait(DEADLINE), f"still {job.state}"
    return job


@pytest.fixture
def queue() -> JobQueue:
    return JobQueue(max_waiting=3)


class Held:
    """A first job that holds the worker until it is let go."""

    def __init__(self, queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running, self.release = threading.Event(), threading.Event()
        ordinary = Job._generate

        def generate_when_released(job: Job) -> None:
            if job is self.job:
                self.running.set()
                assert self.release.wait(DEADLINE)
            ordinary(job)

        monkeypatch.setattr(Job, "_generate", generate_when_released)
        self.job: Job | None = None
        original_init = Job.__init__

        def remember_first(job: Job, asked: Request) -> None:
            original_init(job, asked)
            self.job = self.job or job

        monkeypatch.setattr(Job, "__init__", remember_first)
        queue.submit(request(1))
        assert self.running.wait(DEADLINE)


def test_both_runs_are_the_core_s_own_generation(queue: JobQueue):
    job = finish(queue.submit(request(6)))
    model = models.get(MODEL)
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


def test_sampling_draws_the_same_tokens_in_both_runs(queue: JobQueue):
    options = {"temperature": 1.2, "top_k": 50, "top_p": 0.9}
    first = finish(queue.submit(request(8, seed=3, **options)))
    again = finish(queue.submit(request(8, seed=3, **options)))
    assert first.cached.token_ids == first.uncached.token_ids == again.cached.token_ids


def test_jobs_wait_in_line(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    held = Held(queue, monkeypatch)
    second, third, fourth = (queue.submit(request(1)) for _ in range(3))
    assert [queue.ahead(job) for job in (second, third, fourth)] == [1, 2, 3]
    with pytest.raises(OverLimit, match="3 visitors are already waiting"):
        queue.submit(request(1))
    third.stop()  # who leaves the line moves the others up
    assert [queue.ahead(job) for job in (second, fourth)] == [1, 2]
    assert finish(third).state == "stopped"
    held.release.set()
    assert [finish(job).state for job in (second, fourth)] == ["done", "done"]
    assert queue.ahead(fourth) == 0


def test_stops_within_a_second_in_the_middle_of_a_long_pass(queue: JobQueue):
    job = queue.submit(request(200, prompt="many words " * 250))
    while not job.device and job.live:
        job.finished.wait(0.01)
    begin = time.monotonic()
    job.stop()
    finish(job)
    assert time.monotonic() - begin < 1.0
    assert job.state == "stopped"


def test_a_job_nobody_watches_ends(queue: JobQueue, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ui.generation.UNWATCHED_SECONDS", 0.0)
    assert finish(queue.submit(request(200))).state == "stopped"


def test_a_failing_model_is_a_message_and_the_queue_goes_on(
    queue: JobQueue, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(models, "get", lambda name: 1 / 0)
        assert "see the server log" in finish(queue.submit(request(1))).error
    assert finish(queue.submit(Request("no-such-model", "x", 1))).state == "failed"
    assert finish(queue.submit(request(1))).state == "done"


@pytest.mark.parametrize("n_new", [0, 201, -3])
def test_the_number_of_tokens_is_bounded(queue: JobQueue, n_new: int):
    with pytest.raises(OverLimit, match=f"1 to 200 new tokens, not {n_new}"):
        queue.submit(request(n_new))


def test_a_prompt_over_the_limit(queue: JobQueue):
    job = finish(queue.submit(request(1, prompt="a " * MAX_PROMPT_TOKENS)))
    assert job.state == "failed"
    assert "over the limit of 512 for a prompt" in job.error
    assert "type a word" in finish(queue.submit(request(1, prompt=""))).error


def test_stopping_is_not_a_failure():
    job = Job(request(1))
    job.stop()
    with pytest.raises(Stopped):
        job._check_stop(0)
    job.run()
    assert (job.state, job.error) == ("stopped", "")


def test_the_chart_keeps_its_axis_while_it_fills():
    decode = {CACHED: [1.0, 2.0], UNCACHED: [3.0]}
    chart = time_per_token({CACHED: 9.0}, decode, n_steps=39)
    assert chart["encoding"]["x"]["scale"]["domain"] == [0, 39]
    rows = [(row["kind"], row["step"], row["milliseconds"]) for row in chart["data"]["values"]]
    assert rows == [("prefill", 0, 9.0), ("decode", 1, 1.0), ("decode", 2, 2.0), ("decode", 1, 3.0)]


def run_job(site: AppTest) -> Job:
    site.button("generate_start").click().run()
    assert not site.exception
    job = site.session_state[live._JOB]
    finish(job)
    site.run()
    assert not site.exception
    return job


def test_the_page_shows_what_the_job_measured(site: AppTest):
    open_page(site, PAGE)
    site.slider("generate_tokens").set_value(4).run()
    job = run_job(site)
    assert site.success[0].value.startswith("Done: 4 tokens.")
    shown = {metric.label: metric.value for metric in site.metric}
    assert shown["Speed-up in total"] == f"{job.speed_up:.2f} ×"
    assert shown["Largest logit difference"] == f"{job.largest_difference:.1e}"
    assert shown["Same tokens"] == "yes"
    assert shown["Device"] == job.device
    text = "The next day is bright" + job.text(job.cached)
    assert [block.value for block in site.code][:2] == [text, text]
    steps = site.dataframe[0].value
    assert len(steps) == 8
    assert list(steps["token id"][:4]) == job.cached.token_ids
    assert list(steps["kind"][:4]) == ["prefill", "decode", "decode", "decode"]


def test_a_new_run_replaces_the_old_one(site: AppTest):
    open_page(site, PAGE)
    site.slider("generate_tokens").set_value(200).run()
    site.button("generate_start").click().run()
    first = site.session_state[live._JOB]
    site.slider("generate_tokens").set_value(1).run()
    second = run_job(site)
    assert finish(first).state == "stopped"
    assert second.state == "done"


def test_an_overlong_prompt_is_a_message_and_stays(site: AppTest):
    prompt = "a " * 600
    open_page(site, PAGE)
    site.text_area("generate_prompt").set_value(prompt).run()
    run_job(site)
    assert any("over the limit of 512 for a prompt" in m for m in messages(site))
    assert site.text_area("generate_prompt").value == prompt


def test_controls_at_their_extremes(site: AppTest):
    open_page(site, PAGE)
    site.slider("generate_tokens").set_value(1)
    site.slider("generate_temperature").set_value(2.0)
    site.slider("generate_top_k").set_value(200)
    site.slider("generate_top_p").set_value(0.05)
    site.number_input("generate_seed").set_value(2**31 - 1).run()
    assert run_job(site).state == "done"


def test_model_text_is_never_markdown(site: AppTest):
    prompt = "# <b>loud</b> ![x](http://example.invalid/x.png)"
    open_page(site, PAGE, generate_prompt=prompt, generate_tokens="1")
    run_job(site)
    assert site.code[0].value.startswith(prompt)
    assert not any("example.invalid" in element.value for element in site.markdown)
