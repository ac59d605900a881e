"""The parts of `benchmarks.one_pass`; no time of the site is asserted."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

import pretrained
from benchmarks import one_pass
from benchmarks.one_pass import Figure
from pretrained.tokenization.choose import for_source


def figure(*values: float, limit: float | None = 2.0, at_least: bool = False) -> Figure:
    return Figure("painted", "s", limit, at_least, list(values))


@pytest.mark.parametrize(
    ("measured", "holds"),
    [
        (figure(1.0, 2.0, 1.5), "yes"),
        (figure(1.0, 2.1, 1.5), "median only"),
        (figure(1.0, 2.1, 2.2), "no"),
        (figure(2.0, 9.0, 3.0, at_least=True), "yes"),
        (figure(1.9, 9.0, 3.0, at_least=True), "median only"),
        (figure(1.9, 9.0, 1.8, at_least=True), "no"),
        (figure(9.0, limit=None), ""),
        (figure(), ""),
    ],
)
def test_whether_a_limit_holds(measured: Figure, holds: str):
    assert measured.holds == holds


def test_the_worst_is_the_one_furthest_beyond_the_limit():
    assert figure(1.0, 3.0, 2.0).worst == 3.0
    assert figure(1.0, 3.0, 2.0, at_least=True).worst == 1.0


def test_the_table_has_a_line_a_figure():
    printed = one_pass.report(
        [figure(0.5, 2.5, 1.0), figure(40, 20, at_least=True), figure(limit=None)]
    )
    _, _, first, second, empty = printed.splitlines()
    assert first.split() == ["painted", "1", "2.5", "3", "≤", "2", "s", "median", "only"]
    assert second.split() == ["painted", "30", "20", "2", "≥", "2", "s", "yes"]
    assert empty.split() == ["painted", "-", "-", "0", "s"]


def test_texts_have_their_number_of_tokens_and_differ(bundled_weights):
    source = pretrained.find(one_pass.MODEL)
    assert source is not None
    tokenizer = for_source(source.path)
    for n_tokens in one_pass.LIMITS:
        texts = {one_pass.text_of(n_tokens, seed) for seed in range(5)}
        assert {len(tokenizer.encode(text).ids) for text in texts} == {n_tokens}
        assert len(texts) == 5
    with pytest.raises(ValueError, match="n_tokens is 1"):
        one_pass.text_of(1, seed=0)


def test_frames_a_second_of_known_moments():
    assert one_pass.frames_a_second([1000, 1020, 1040, 1100]) == 30
    with pytest.raises(ValueError, match="at least 2 frames, got 1"):
        one_pass.frames_a_second([1000])


# A picture that is told of an opened head 100 ms after a key, draws it 200 ms after the key, and
# walks for 300 ms from then on, with a drawing at its end.
PAGE = """
<div data-testid="stApp" data-test-script-state="notRunning"><div data-testid="stMain">
 <figure class="one-pass"><canvas tabindex="0"></canvas></figure>
</div></div>
<script>
 const canvas = document.querySelector("canvas"), figure = document.querySelector("figure");
 const draw = (text) => {
  canvas.getContext("2d").clearRect(0, 0, 9, 9);
  figure.lastDrawn = {
   map: { labels: [text, "y"], picture: "p" }, place: { level: "head" }, items: new Map() };
 };
 draw("old ");
 canvas.addEventListener("keydown", () => {
  setTimeout(() => {
   window.attentionLabOpened = new Map([["p", { layer: 3, head: 5 }]]);
   window.dispatchEvent(new CustomEvent("attention-lab-opened", { detail: "p" }));
  }, 100);
  setTimeout(() => {
   draw("new ");
   canvas.toggleAttribute("data-walking", true);
  }, 200);
  setTimeout(() => {
   draw("new ");
   canvas.toggleAttribute("data-walking", false);
  }, 500);
 });
</script>
"""


@pytest.fixture
def watched(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.add_init_script(one_pass._WATCH)
    page.route(
        "http://page.invalid/**", lambda route: route.fulfill(body=PAGE, content_type="text/html")
    )
    page.goto("http://page.invalid/")
    yield page
    page.close()


@pytest.mark.browser
def test_the_watch_tells_when_numbers_came_and_pictures_were_painted(watched: Page):
    canvas = watched.locator("canvas")
    canvas.evaluate("(canvas) => window.__onePass.countFrames(canvas)")
    canvas.press("a")
    watched.wait_for_function("() => window.__onePass.idle()", polling=50)
    state = watched.evaluate("window.__onePass.state")
    [arrived] = state["arrived"]
    assert arrived["opened"] == ["layer 3", "head 5"]
    new = [drawn for drawn in state["painted"] if drawn["text"] == "new y"]
    assert [drawn["rests"] for drawn in new] == [False, True]
    assert all(drawn["opened"] == arrived["opened"] for drawn in new)
    # timers are late, never early
    moments = [moment["now"] - state["press"] for moment in (arrived, *new)]
    assert moments[0] >= 100
    assert moments[1] >= 200
    assert moments[2] >= 500
    # frames are counted from the key on, until the walk has ended
    assert state["press"] <= state["frames"][0] < new[0]["now"] < state["frames"][-1]
