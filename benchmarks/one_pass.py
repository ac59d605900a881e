"""Speed of the pages One pass and Home: `python -m benchmarks.one_pass`.

It starts the site and a headless Chromium without a GPU. The bundled decoder (30 layers of 9 heads)
runs on new texts with an exact number of tokens, after the model has loaded. These are
measured in the browser:

    sent            WebSocket bytes from Enter in the text box until the page's run has ended: the
                    picture, the open layer and head, and the rest of the page.
    painted         from that Enter until the picture shows the new text: the second animation frame
                    after it was drawn. At rest: until nothing moves.
    opened          from the click on a layer's number, or on one of its heads, until its numbers
                    arrive in the browser. Painted: until a picture with them is painted.
    frames          animation frames per second while the picture moves between the whole model, a
                    layer, a head and a matrix, from the click or key to the last moving frame.
    Home            from requesting Home from a server that just started until its heading, and its
                    first picture, are painted.

Each line of the table has a median, a worst value, the limit, and whether it's met ("median only"
if the worst value exceeds it). The times are absolute, so other busy processes distort them. The
exit status is always 0.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from benchmarks import heads
from benchmarks.browser import chromium, site
from benchmarks.timing import machine, table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Position

MODEL, N_LAYERS, N_HEADS = "smollm2-135m-instruct", 30, 9
# tokens -> limits for the kilobytes sent and the seconds until painted for a new text
LIMITS: dict[int, tuple[float | None, float | None]] = {24: (500, 0.8), 64: (1500, 1.5)}
LAYERS_APART = 7  # distance between the layers that are opened
OPENED_SECONDS, FRAMES_A_SECOND, HOME_SECONDS = 0.25, 30, 2.0
REPEATS = 5
WINDOW = {"width": 1440, "height": 900}
_PATIENCE_MS = 120_000  # first run of a model on a busy machine

# Runs in the page before its own scripts. One function draws the picture, and it starts with
# `clearRect`. In the microtask after it, `lastDrawn` describes what was drawn; two animation frames
# later it's painted. Frames are counted from a press until the picture is at rest.
_WATCH = """
(() => {
  const state = { press: 0, painted: [], arrived: [], frames: [], waiting: 0, ran: 0 };
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  const named = (opened) => opened ? [`layer ${opened.layer}`, `head ${opened.head}`] : [];
  const note = (canvas, figure) => {
    const { map, place } = figure.lastDrawn ?? {};
    if (!map) return;
    const opened = window.attentionLabOpened?.get(map.picture);
    const drawn = {
      text: map.labels.join(""), tokens: map.labels.length, level: place.level,
      opened: named(opened),
      rests: !canvas.hasAttribute("data-walking"),
    };
    state.waiting++;
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      state.painted.push({ ...drawn, now });
      state.waiting--;
    }));
  };
  CanvasRenderingContext2D.prototype.clearRect = function (...values) {
    const figure = this.canvas.closest?.("figure.one-pass");
    if (figure) queueMicrotask(() => note(this.canvas, figure));
    return clear.apply(this, values);
  };
  window.addEventListener("attention-lab-opened", ({ detail }) => {
    const opened = named(window.attentionLabOpened.get(detail));
    state.arrived.push({ opened, now: performance.now() });
  });
  new MutationObserver(() => { state.ran = performance.now(); }).observe(
    document, { subtree: true, attributeFilter: ["data-test-script-state"] });
  const press = () => {
    Object.assign(state, { press: performance.now(), painted: [], arrived: [], frames: [] });
  };
  for (const event of ["keydown", "pointerdown"]) document.addEventListener(event, press, true);
  window.__onePass = {
    state,
    // call before a press: counts the frames of the movement that it starts
    countFrames: (canvas) => {
      let flew = false;
      const count = (now) => {
        const walking = canvas.hasAttribute("data-walking");
        if (state.press && now >= state.press) state.frames.push(now);
        flew ||= walking;
        if (!flew || walking) requestAnimationFrame(count);
      };
      requestAnimationFrame(count);
    },
    idle: () => {
      const app = document.querySelector("[data-testid=stApp]");
      const last = Math.max(state.press, ...[...state.painted, ...state.arrived].map((a) => a.now));
      // a step that opens nothing is sent to the server after 600 ms
      return app?.dataset.testScriptState === "notRunning" && !state.waiting
        && performance.now() - Math.max(last, state.ran) > 900
        && !document.querySelector("[data-testid=stMain] [data-testid=stSkeleton]");
    },
  };
})();
"""


@dataclass
class Figure:
    """One line of the table: repeated measurements and their limit.

    limit: None if the line has no limit. at_least: whether values must reach the limit rather than
    stay below it.
    """

    name: str
    unit: str
    limit: float | None = None
    at_least: bool = False
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def worst(self) -> float:
        """The value closest to the limit, or furthest beyond it."""
        return min(self.values) if self.at_least else max(self.values)

    def _meets_limit(self, value: float) -> bool:
        assert self.limit is not None
        return value >= self.limit if self.at_least else value <= self.limit

    @property
    def verdict(self) -> str:
        """Whether the limit is met: "yes", "median only", "no", or "" if there's no limit."""
        if self.limit is None or not self.values:
            return ""
        if not self._meets_limit(self.median):
            return "no"
        return "yes" if self._meets_limit(self.worst) else "median only"


def report(figures: Sequence[Figure]) -> str:
    """The table with one line per figure."""
    rows: list[tuple[str, ...]] = [("", "median", "worst", "repeats", "limit", "unit", "met")]
    for figure in figures:
        limit = "" if figure.limit is None else f"{figure.limit:g}"
        sign = "" if not limit else "≥ " if figure.at_least else "≤ "
        message = (
            [f"{value:.3g}" for value in (figure.median, figure.worst)] if figure.values else []
        )
        rows.append(
            (
                figure.name,
                *(message or ["-", "-"]),
                str(len(figure.values)),
                sign + limit,
                figure.unit,
                figure.verdict,
            )
        )
    return table(rows)


def text_of(n_tokens: int, seed: int) -> str:
    """A text of `n_tokens` SmolLM2 tokens.

    Raises: ValueError for fewer than 2 tokens.
    """
    if n_tokens < 2:
        raise ValueError(f"n_tokens must be at least 2 (“The” and a word), got {n_tokens}")
    return f"The {heads.text_of(n_tokens + 1, seed)}"


def frames_a_second(moments: Sequence[float]) -> float:
    """Frames per second from the start times of frames in ms.

    Raises: ValueError for fewer than two frames.
    """
    if len(moments) < 2:
        raise ValueError(f"at least 2 frames are needed, got {len(moments)}")
    return 1000 * (len(moments) - 1) / (moments[-1] - moments[0])


class OnePassPage:
    """The One pass page in a browser, with the bundled decoder."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.add_init_script(_WATCH)
        self._received = 0
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.goto(f"{url}/one-pass?{urlencode({'one_pass_model': MODEL})}")
        self.canvas = self.page.locator("figure.one-pass canvas")
        self.canvas.and_(self.page.locator("[data-painted]")).wait_for()
        self.wait()

    def _count(self, frame: str | bytes) -> None:
        self._received += len(frame)

    def wait(self) -> None:
        """Wait until the page is at rest and no message to the server is pending."""
        self.page.wait_for_function("() => window.__onePass?.idle()", polling=100)

    def _until(self, holds: str, argument: Any) -> None:
        """Wait until a picture painted since the last press passes a JavaScript test."""
        self.page.wait_for_function(
            f"(value) => window.__onePass.state.painted.some((drawn) => ({holds})(drawn, value))",
            arg=argument,
            polling=50,
        )

    def _state(self) -> Any:
        return self.page.evaluate("window.__onePass.state")

    def enter(self, n_tokens: int, seed: int, into: dict[str, Figure]) -> None:
        """Type a text and press Enter.

        Raises: RuntimeError if the picture shows a different number of tokens.
        """
        text = text_of(n_tokens, seed)
        box = self.page.get_by_label("Text", exact=True)
        box.fill(text)
        before = self.canvas.evaluate(
            "(canvas) => canvas.closest('figure').lastDrawn.map.labels.join('')"
        )
        self._received = 0
        box.press("Enter")
        self._until("(drawn, before) => drawn.text !== before", before)
        self.wait()
        state = self._state()
        shown = [drawn for drawn in state["painted"] if drawn["text"] != before]
        if shown[0]["tokens"] != n_tokens:
            raise RuntimeError(f"{shown[0]['tokens']} tokens are shown instead of {n_tokens}")
        rests = next(drawn for drawn in shown if drawn["rests"])
        into["sent"].values.append(self._received / 1000)
        into["painted"].values.append((shown[0]["now"] - state["press"]) / 1000)
        into["at rest"].values.append((rests["now"] - state["press"]) / 1000)

    def open(self, item: str, opened: str, into: dict[str, Figure]) -> None:
        """Click an item of the picture, and wait for the numbers of the opened part.

        item: a layer ("slab 3"), clicked on its number, or a tile of the open layer. opened: "layer
        3", or "head 5" of the open layer.
        """
        before = self._received
        self.canvas.click(position=self._place_of(item))
        self._until("(drawn, opened) => drawn.opened.includes(opened)", opened)
        self.wait()
        state = self._state()
        for name in ("arrived", "painted"):
            first = next(one["now"] for one in state[name] if opened in one["opened"])
            into[name].values.append((first - state["press"]) / 1000)
        into["sent"].values.append((self._received - before) / 1000)

    def place(self) -> tuple[int, int]:
        """The layer and the head that the picture shows."""
        _, layer, head, *_ = (self.canvas.get_attribute("data-place") or "").split()
        return int(layer), int(head)

    def _place_of(self, item: str) -> Position:
        x, y, w, h = self.canvas.evaluate(
            """(canvas, name) => {
                 const { x, y, w, h } = canvas.closest("figure").lastDrawn.items.get(name);
                 return [x, y, w, h];
               }""",
            item,
        )
        # layer numbers are above their rows
        return {"x": x + w / 2, "y": y / 2 if item.startswith("slab ") else y + h / 2}

    def walk(self, key: str, into: Figure) -> None:
        """Press a key that moves the picture, and count the frames."""
        self.canvas.focus()
        self.canvas.evaluate("(canvas) => window.__onePass.countFrames(canvas)")
        self.page.keyboard.press(key)
        self.wait()
        into.values.append(frames_a_second(self._state()["frames"]))

    def zoom_out(self) -> None:
        """Go back to the whole picture, with the pointer outside and the numbers visible."""
        self.page.mouse.move(0, 0)
        for _ in range(3):
            self.canvas.press("Escape")
        self.wait()
        # with 64 tokens the picture is taller than the window, and the header would cover them
        self.page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 0)")


def measure_new_texts(
    page: OnePassPage, n_tokens: int, repeats: int, limits: tuple[float | None, float | None]
) -> list[Figure]:
    """Measure new texts; limits: kilobytes sent, seconds until painted."""
    kilobytes, seconds = limits
    figures = {
        "sent": Figure(f"sent for a new text, {n_tokens} tokens", "kB", kilobytes),
        "painted": Figure(f"new text painted, {n_tokens} tokens", "s", seconds),
        "at rest": Figure("  at rest", "s"),
    }
    for repeat in range(repeats):
        page.enter(n_tokens, 1000 * n_tokens + repeat, figures)
    return list(figures.values())


def measure_layers(page: OnePassPage, n_tokens: int, repeats: int) -> list[Figure]:
    """Measure opening layers from the whole picture."""
    figures = _opening_figures(f"layer opened, {n_tokens} tokens")
    for _ in range(repeats):
        page.zoom_out()
        layer = (page.place()[0] + LAYERS_APART) % N_LAYERS
        page.open(f"slab {layer}", f"layer {layer}", figures)
    return list(figures.values())


def measure_heads(page: OnePassPage, n_tokens: int, repeats: int) -> list[Figure]:
    """Measure opening heads in the open layer."""
    figures = _opening_figures(f"head opened, {n_tokens} tokens")
    for _ in range(repeats):
        layer, head = page.place()
        head = (head + 1) % N_HEADS
        page.open(f"tile {layer} {head}", f"head {head}", figures)
    return list(figures.values())


def _opening_figures(name: str) -> dict[str, Figure]:
    return {
        "arrived": Figure(name, "s", OPENED_SECONDS),
        "painted": Figure("  painted", "s"),
        "sent": Figure("  sent", "kB"),
    }


def measure_flights(page: OnePassPage, repeats: int, n_tokens: int) -> list[Figure]:
    """Measure frames per second while zooming in and back out."""
    page.zoom_out()
    figure = Figure(f"frames while moving, {n_tokens} tokens", "/s", FRAMES_A_SECOND, at_least=True)
    for _ in range(repeats):
        for key in ("Enter", "Enter", "Enter", "Escape", "Escape", "Escape"):
            page.walk(key, figure)
    return [figure]


# Time since the page was requested, once its heading or one of its pictures is visible.
_WHEN = """
(find) => {
  const seen = (element) => element?.checkVisibility({ opacityProperty: true });
  const pictures = () => [...document.querySelectorAll("*")].map(
    (host) => host.shadowRoot?.querySelector("canvas:is([data-painted], [data-cell])"));
  const there = find === "heading" ? [document.querySelector("h1")] : pictures();
  return there.some(seen) && performance.now();
}
"""


def measure_home(browser: Browser, repeats: int, limit: float) -> list[Figure]:
    """Measure the first visit to a server that has just started."""
    heading = Figure("Home of a cold server, heading", "s", limit)
    picture = Figure("Home of a cold server, picture", "s", limit)
    for _ in range(repeats):
        with site() as url:
            context = browser.new_context(viewport=WINDOW)  # type: ignore[arg-type]
            page = context.new_page()
            page.set_default_timeout(_PATIENCE_MS)
            page.goto(url, wait_until="commit")
            for figure, what in ((heading, "heading"), (picture, "picture")):
                result = page.wait_for_function(_WHEN, arg=what, polling=20)
                figure.values.append(float(result.json_value()) / 1000)
            context.close()
    return [heading, picture]


def measure(browser: Browser, repeats: int) -> Iterator[Figure]:
    """Yield all figures in the order of the table."""
    with site() as url:
        page = OnePassPage(browser, url)
        measure_new_texts(page, 16, 2, (None, None))  # warm-up: load and compile
        for n_tokens, limits in LIMITS.items():
            yield from measure_new_texts(page, n_tokens, repeats, limits)
            yield from measure_layers(page, n_tokens, repeats)
            yield from measure_heads(page, n_tokens, repeats)
            yield from measure_flights(page, repeats, n_tokens)
        page.page.close()
    yield from measure_home(browser, repeats, HOME_SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_pass")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="repeats of each figure")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    os.environ["HF_HUB_OFFLINE"] = "1"
    begin = time.monotonic()
    figures = []
    with chromium() as browser:
        for figure in measure(browser, options.repeats):
            figures.append(figure)
            print(f"{figure.name}: {figure.median:.3g}", file=sys.stderr, flush=True)
    print(f"One pass and Home, {MODEL}, {N_LAYERS} layers of {N_HEADS} heads")
    print(f"{machine()}; {os.cpu_count()} cores; {time.monotonic() - begin:.0f} s total")
    print("Times are absolute: other busy processes on this machine distort them.\n")
    print(report(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
