"""The visitor's run: buttons to start and pause it, and its live picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.learn.watch_heads_form import findings, job, live_chart, maps, stored
from pages.learn.watch_heads_form.job import FormingJob
from pages.learn.watch_heads_form.recording import Moment, TrainingHistory, TrainingSettings
from serving.limits import MAX_FORMING_STEPS, OverLimit
from serving.queues import TRAININGS
from ui.charts.show import show_live
from ui.widgets import job_view, messages

_JOB, _REFUSED = "watch_heads_form_job", "watch_heads_form_refused"
FORGOTTEN_NOTE = (
    "This run was deleted to free memory for other visitors. Press Play to repeat it: the same "
    "settings and seed give the same run."
)


def buttons(settings: TrainingSettings) -> None:
    """Show Play, Pause and Restart; all three are always visible, so that they don't move."""
    mine = _job()
    live = mine is not None and mine.is_live
    run = None if mine is None else job.run.peek(mine.number)
    same = mine is not None and mine.settings == settings
    unfinished = mine is not None and mine.state != "done"
    goes_on = same and unfinished and run is not None and bool(run.recording.moments)
    st.button(
        "Resume" if goes_on and not live else "Play",
        type="primary",
        icon=":material/play_arrow:",
        key="watch_heads_form_play",
        on_click=_start,
        args=(settings,),
        kwargs={"restart": not goes_on},
        disabled=live and same,
    )
    st.button(
        "Pause",
        icon=":material/pause:",
        key="watch_heads_form_pause",
        on_click=None if mine is None else mine.stop,
        disabled=not live,
    )
    st.button(
        "Restart",
        icon=":material/replay:",
        key="watch_heads_form_again",
        on_click=_start,
        args=(settings,),
        kwargs={"restart": True},
        disabled=mine is None,
    )


def show(settings: TrainingSettings) -> TrainingHistory:
    """Draw the visitor's run, or the stored run if there is none, and return it."""
    mine = _job()
    live = mine is not None and mine.is_live
    if mine is not None and live:
        job_view.follow(mine, partial(_running, settings), is_live=True, every=0.5)
    else:
        with job_view.job_container():
            recording = _visible_history(mine)
            _picture(recording, _moment(recording), mine, settings, partial(_steps, recording))
    return _visible_history(mine)


def is_stored(recording: TrainingHistory) -> bool:
    """Whether this is the stored default run."""
    return recording is stored.stored().runs[stored.DEFAULT]


def _running(settings: TrainingSettings, mine: FormingJob, was_live: bool) -> None:
    recording = _visible_history(mine)
    newest = list(recording.moments_with_maps.values())[-1]
    _picture(recording, newest, mine, settings, below=partial(_progress, mine))


def _picture(
    recording: TrainingHistory,
    moment: Moment,
    mine: FormingJob | None,
    settings: TrainingSettings,
    below: Callable[[], None],
) -> None:
    """Draw the maps, with `below` under them, and the charts on their right."""
    left, right = st.columns([5, 4], gap="medium")
    with left:
        title = f"{_run_label(recording)}, after step {moment.step}"
        maps.draw(recording, moment, title, key="watch_heads_form_maps")
        with st.container(height=84, border=False):  # a fixed height, so that nothing moves
            below()
    with right:
        show_live(live_chart.losses(recording), key="watch_heads_form_losses")
        show_live(live_chart.scores(recording), key="watch_heads_form_scores")
        with st.container(key="watch_heads_form_note"):  # has a fixed height
            _note(mine, settings)
    with st.container(key="watch_heads_form_found"):  # has a fixed height
        st.markdown(
            f"{findings.drop_sentence(recording)} {findings.generalization_sentence(recording)}"
        )


def _step_key(recording: TrainingHistory) -> str:
    """A slider key per run, so that each slider starts at the run's last step."""
    return f"watch_heads_form_step_{recording.settings}_{len(recording.moments)}"


def _moment(recording: TrainingHistory) -> Moment:
    """The moment chosen with the slider, read before it's drawn because it is below the maps."""
    drawn = recording.moments_with_maps
    return drawn[st.session_state.get(_step_key(recording), list(drawn)[-1])]


def _steps(recording: TrainingHistory) -> None:
    """Show a slider over the steps with stored maps."""
    steps = list(recording.moments_with_maps)
    st.select_slider("Maps after step", steps, steps[-1], key=_step_key(recording))


def _progress(mine: FormingJob) -> None:
    """Show the run's progress, or its queue position."""
    run = job.run.peek(mine.number)
    n_steps = 0 if run is None else run.n_steps
    ahead = mine.n_ahead
    note = (
        f"Waiting for {ahead} other run{'s' * (ahead != 1)}"
        if ahead
        else f"{n_steps} of {MAX_FORMING_STEPS} steps"
    )
    st.progress(n_steps / MAX_FORMING_STEPS, text=note)


def _note(mine: FormingJob | None, settings: TrainingSettings) -> None:
    refused = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        messages.show_problem(refused)
    elif mine is None:
        stored_runs = stored.stored()
        if settings == stored_runs.runs[stored.DEFAULT].settings:
            text = "Press **Play** to train your own model. It takes less than a minute."
        else:
            text = "It doesn't use your settings. Press **Play** to train a model with them."
        st.markdown(
            f":small[This is a stored run ({stored_runs.machine}; {stored_runs.day}). {text}]"
        )
    elif mine.error:
        messages.show_problem(mine.error)
    elif not mine.is_live and job.run.peek(mine.number) is None:
        messages.show_problem(FORGOTTEN_NOTE)
    elif mine.settings != settings:
        st.markdown(":small[You changed the settings. Press **Play** to start a new run.]")
    else:
        st.markdown(f":small[Settings of this run: {mine.settings.summary}.]")


def _run_label(recording: TrainingHistory) -> str:
    return "Stored run" if is_stored(recording) else "Your run"


def _visible_history(mine: FormingJob | None) -> TrainingHistory:
    run = None if mine is None else job.run.peek(mine.number)
    if run is None or not run.recording.moments:
        return stored.stored().runs[stored.DEFAULT]
    return run.recording


def _job() -> FormingJob | None:
    result: FormingJob | None = st.session_state.get(_JOB)
    return result


def _start(settings: TrainingSettings, *, restart: bool) -> None:
    """Queue a new run, or the rest of a paused one, instead of the visitor's earlier job."""
    before = _job()
    number = job.new_number() if restart or before is None else before.number
    mine = FormingJob(number, settings)
    try:
        TRAININGS.put(mine, replaces=before, **job_view.job_owner())
    except OverLimit as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state[_JOB] = mine
