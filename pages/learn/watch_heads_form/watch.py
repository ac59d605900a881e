"""The run of this visitor: the buttons that play and pause it, and its picture while it learns."""

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
FORGOTTEN = (
    "This run was forgotten, because many others run here. Press Play to begin a new one with the "
    "same settings: the same seed gives the same run."
)


def buttons(settings: TrainingSettings) -> None:
    """Play, Pause and From the start; they stay where they are, whatever runs."""
    mine = _job()
    live = mine is not None and mine.live
    run = None if mine is None else job.run.peek(mine.number)
    same = mine is not None and mine.settings == settings
    unfinished = mine is not None and mine.state != "done"
    goes_on = same and unfinished and run is not None and bool(run.recording.moments)
    st.button(
        "Play on" if goes_on and not live else "Play",
        type="primary",
        icon=":material/play_arrow:",
        key="watch_heads_form_play",
        on_click=_start,
        args=(settings,),
        kwargs={"anew": not goes_on},
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
        "From the start",
        icon=":material/replay:",
        key="watch_heads_form_again",
        on_click=_start,
        args=(settings,),
        kwargs={"anew": True},
        disabled=mine is None,
    )


def show(settings: TrainingSettings) -> TrainingHistory:
    """The picture: of this visitor's run if there is one, else of the stored run."""
    mine = _job()
    live = mine is not None and mine.live
    if mine is not None and live:
        job_view.follow(mine, partial(_running, settings), live=True, every=0.5)
    else:
        with job_view.place_of_a_job():
            recording = _shown(mine)
            _picture(recording, _moment(recording), mine, settings, partial(_steps, recording))
    return _shown(mine)


def is_stored(recording: TrainingHistory) -> bool:
    """Whether this is the stored run."""
    return recording is stored.stored().runs[stored.USUAL]


def _running(settings: TrainingSettings, mine: FormingJob, was_live: bool) -> None:
    recording = _shown(mine)
    newest = list(recording.drawn.values())[-1]
    _picture(recording, newest, mine, settings, below=partial(_progress, mine))


def _picture(
    recording: TrainingHistory,
    moment: Moment,
    mine: FormingJob | None,
    settings: TrainingSettings,
    below: Callable[[], None],
) -> None:
    """Maps at the left with what chooses or tells the step below them; the charts at the right."""
    left, right = st.columns([5, 4], gap="medium")
    with left:
        title = f"{_whose(recording)}, after step {moment.step}"
        maps.draw(recording, moment, title, key="watch_heads_form_maps")
        with st.container(height=84, border=False):  # the charts and maps stay where they are
            below()
    with right:
        show_live(live_chart.losses(recording), key="watch_heads_form_losses")
        show_live(live_chart.scores(recording), key="watch_heads_form_scores")
        with st.container(key="watch_heads_form_note"):  # all notes are as high as the longest
            _note(mine, settings)
    with st.container(key="watch_heads_form_found"):  # as high from the start as it gets
        st.markdown(f"{findings.dropped(recording)} {findings.learned(recording)}")


def _step_key(recording: TrainingHistory) -> str:
    """Another slider for another run, so that each opens at its last step."""
    return f"watch_heads_form_step_{recording.settings}_{len(recording.moments)}"


def _moment(recording: TrainingHistory) -> Moment:
    """What the slider stands at; it is below the maps, and whatever is below waits for them."""
    drawn = recording.drawn
    return drawn[st.session_state.get(_step_key(recording), list(drawn)[-1])]


def _steps(recording: TrainingHistory) -> None:
    """A slider over the steps whose maps were kept."""
    steps = list(recording.drawn)
    st.select_slider("Maps after step", steps, steps[-1], key=_step_key(recording))


def _progress(mine: FormingJob) -> None:
    """How far the run is, or how long it has to wait."""
    run = job.run.peek(mine.number)
    n_steps = 0 if run is None else run.n_steps
    ahead = mine.ahead
    note = f"Waiting: {ahead} ahead of you." if ahead else f"{n_steps} of {MAX_FORMING_STEPS} steps"
    st.progress(n_steps / MAX_FORMING_STEPS, text=note)


def _note(mine: FormingJob | None, settings: TrainingSettings) -> None:
    refused = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        messages.problem(refused)
    elif mine is None:
        kept = stored.stored()
        if settings == kept.runs[stored.USUAL].settings:
            text = "**Play** trains a model of your own here: it takes under a minute."
        else:
            text = "It has other settings than yours: **Play** trains a model with yours."
        st.markdown(f":small[A stored run ({kept.machine}; {kept.day}). {text}]")
    elif mine.error:
        messages.problem(mine.error)
    elif not mine.live and job.run.peek(mine.number) is None:
        messages.problem(FORGOTTEN)
    elif mine.settings != settings:
        st.markdown(":small[You changed the settings: **Play** begins a new run with them.]")
    else:
        st.markdown(f":small[This run: {mine.settings.summary}.]")


def _whose(recording: TrainingHistory) -> str:
    return "Stored run" if is_stored(recording) else "Your run"


def _shown(mine: FormingJob | None) -> TrainingHistory:
    run = None if mine is None else job.run.peek(mine.number)
    if run is None or not run.recording.moments:
        return stored.stored().runs[stored.USUAL]
    return run.recording


def _job() -> FormingJob | None:
    found: FormingJob | None = st.session_state.get(_JOB)
    return found


def _start(settings: TrainingSettings, *, anew: bool) -> None:
    """Queue a run in place of this visitor's earlier job: a new one, or the paused one's rest."""
    before = _job()
    number = job.new_number() if anew or before is None else before.number
    mine = FormingJob(number, settings)
    try:
        TRAININGS.put(mine, instead_of=before, **job_view.whose())
    except OverLimit as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state[_JOB] = mine
