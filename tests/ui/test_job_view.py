"""Test the job view: drawing it watches the job, its button stops it, its end reruns the page.

The page in these tests is a function, so its jobs come from its own module.
"""

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from serving.jobs import BackgroundJob
    from ui.widgets import job_view

    if "job" not in st.session_state:
        st.session_state.job = BackgroundJob()
        st.session_state.job._last_seen = 0.0  # a long time ago
    st.session_state.runs = st.session_state.get("runs", 0) + 1
    job, live = st.session_state.job, st.session_state.job.is_live

    def draw(drawn: BackgroundJob, was_live: bool) -> None:
        st.session_state.drawn = [*st.session_state.get("drawn", []), was_live]
        job_view.stop_button(drawn, is_live=was_live, key="stop")
        if st.session_state.get("ends_while_drawn"):
            drawn.finished.set()

    st.text("live" if live else "over")
    job_view.follow(job, draw, is_live=live, every=60.0)


def test_job_is_watched_and_stopped():
    site = AppTest.from_function(page).run()
    assert not site.exception
    assert not site.session_state.job.is_abandoned  # drawing the job counts as watching it
    assert (site.text[0].value, site.session_state.drawn) == ("live", [True])
    assert not site.button(key="stop").disabled
    site.button(key="stop").click().run()
    assert (site.session_state.job.state, site.text[0].value) == ("stopped", "over")
    assert site.button(key="stop").disabled
    runs = site.session_state.runs
    site.run()
    # a job that has already ended doesn't rerun the page
    assert site.session_state.runs == runs + 1


def test_job_that_ends_while_it_is_drawn_is_drawn_again():
    site = AppTest.from_function(page)
    site.session_state.ends_while_drawn = True
    site.run()
    # the page was drawn from a live job, so it must not treat that as the final state
    assert site.session_state.drawn == [True]
    site.session_state.ends_while_drawn = False
    site.run()
    assert site.session_state.drawn == [True, False]
    assert site.text[0].value == "over"
