"""How long a page takes to repaint when a control moves: `python -m benchmarks.repaint [page ...]`.

A server and a headless Chromium are started. On every page of the site, or on the pages named by
their address ("block"), every slider, select slider, toggle, checkbox, radio, selectbox and
segmented control of the main area is moved a few times, questions aside, and aside what starts a
film: its last change is the end of the film. Controls that appear only under some option of another
are found when it gets there. Measured, in the browser:

    ms      from the key press or click to the last change after it: the last mutation of the main
            area, shadow roots included, or the last call that draws on a canvas. A move is over
            when the script does not run and nothing has changed for 300 ms; those do not count.
            A move to a value for the first time counts like any other.
    jump    how far the moved control is from where it was on the screen.

Every page is opened once before that, so that the models and what a page keeps are there.
These are absolute times, unlike those of the other benchmarks: another busy process on the machine
spoils them. The exit status is 1 if a median is over the limit or a control jumped.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.browser import chromium, site
from benchmarks.timing import machine, table

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

LIMIT_MS = 500.0
LIMIT_PX = 2.0
MOVES = 5
MOST_OPTIONS = 12
WINDOW = {"width": 1440, "height": 1000}
_PATIENCE_MS = 60_000  # until a page is idle: not measured
# New tokens of One pass: the model writes them twice and times every pass, and the picture plays
# the passes as long as they took.
_FILMS = {"st-key-one_pass_new"}

# What runs in the page before its own scripts. A change counts if it is in the main area; the
# status widget, menus and toasts are outside. Shadow roots and canvases are watched where they are
# made. A move that starts no run is over after the time in which Streamlit would have sent it.
_WATCH = """
(() => {
  const QUIET = 300, NO_RUN = 1200;
  const state = { press: 0, last: 0, ran: 0, drawn: 0 };
  const main = (node) => {
    for (let at = node; at; at = at.parentNode || at.host) {
      if (at.nodeName === "CANVAS" && at !== node) return false;
      if (["stMain", "stPopoverBody"].includes(at.dataset?.testid)) return true;
    }
    return false;
  };
  const running = () => {
    const app = document.querySelector("[data-testid=stApp]");
    return !app || app.dataset.testScriptState !== "notRunning";
  };
  const observer = new MutationObserver((records) => {
    const now = performance.now();
    for (const record of records) {
      if (record.attributeName === "data-test-script-state") state.ran = now;
      // children of a canvas (a table read aloud) are never painted
      else if (record.target.nodeName !== "CANVAS" && main(record.target)) state.last = now;
    }
  });
  const watch = (root) => observer.observe(root, {
    subtree: true, childList: true, attributes: true, characterData: true,
  });
  watch(document);
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    watch(root);
    return root;
  };
  for (const name of ["fillRect", "clearRect", "strokeRect", "fillText", "fill", "stroke",
                      "drawImage", "putImageData"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...values) {
      if (main(this.canvas)) state.last = performance.now();
      return draw.apply(this, values);
    };
  }
  const press = () => { state.press = performance.now(); };
  for (const event of ["keydown", "pointerdown"]) document.addEventListener(event, press, true);
  window.__repaint = {
    idle: () => {
      const now = performance.now();
      const spinning = document.querySelector(
        "[data-testid=stMain] :is([data-testid=stSpinner], [data-testid=stSkeleton])"
      );
      const begun = state.ran > state.press || now - state.press > NO_RUN;
      return !running() && !spinning && begun && now - state.last > QUIET;
    },
    milliseconds: () => Math.max(0, state.last - state.press),
  };
})();
"""

# Controls of the main area that can be moved now: what each is, its key's class, its label, the
# number of the same kind and label before it (for controls without a key).
_FIND = """
() => {
  const kinds = {
    slider: "[data-testid=stSlider] input[type=range]",
    checkbox: "[data-testid=stCheckbox] input",
    radio: "[data-testid=stRadioGroup]",
    selectbox: "[data-testid=stSelectbox] input[role=combobox]",
    segmented:
      "[data-testid=stButtonGroup] [role=radiogroup]:has([data-variant=segmented_control])",
  };
  const found = [];
  for (const [kind, selector] of Object.entries(kinds)) {
    const within = ":is([data-testid=stMain], [data-testid=stPopoverBody])";
    for (const element of document.querySelectorAll(`${within} :is(${selector})`)) {
      const holder = element.closest("[class*=st-key-]");
      const key = holder && [...holder.classList].find((name) => name.startsWith("st-key-"));
      if (/_quiz(_|$)/.test(key || "") || element.disabled || element.ariaDisabled === "true")
        continue;
      if (!element.checkVisibility()) continue;
      const inside = holder ? [...holder.querySelectorAll(selector)] : [];
      const label = element.ariaLabel || element.closest("label")?.innerText || key || kind;
      const nth = Math.max(0, inside.indexOf(element));
      found.push({ kind, key: key || "", label, selector, nth });
    }
  }
  return found;
}
"""


@dataclass(frozen=True)
class Control:
    """A control on a page: the class of its key, and which of those inside it is meant.

    popover: the number of the button behind which it stands; None for one that is on the page.
    """

    kind: str
    key: str
    label: str
    selector: str
    nth: int
    popover: int | None = None

    @property
    def identity(self) -> tuple[str, str, int]:
        """What tells it from the others of a page."""
        return self.kind, self.key or self.label, self.nth

    @property
    def name(self) -> str:
        """How it is called in the table."""
        key = self.key.removeprefix("st-key-")
        return f"{self.kind} {key}" if key else f"{self.kind} “{self.label}”"


@dataclass(frozen=True)
class Move:
    """One move: milliseconds to the last change, and how far the control went on the screen."""

    milliseconds: float
    jump: float


@dataclass(frozen=True)
class Row:
    """All moves of one control; `under` is the option of another under which it was found.

    Raises: ValueError without a move.
    """

    page: str
    under: str
    control: str
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        """Refuse an empty row."""
        if not self.moves:
            raise ValueError(f"{self.control} was not moved")

    @property
    def median(self) -> float:
        """The middle time in ms."""
        return statistics.median(move.milliseconds for move in self.moves)

    @property
    def worst(self) -> float:
        """The longest time in ms."""
        return max(move.milliseconds for move in self.moves)

    @property
    def jump(self) -> float:
        """The longest way in pixels."""
        return max(move.jump for move in self.moves)

    def verdict(self, limit_ms: float) -> str:
        """What is wrong with it, or nothing."""
        faults = []
        if self.median > limit_ms:
            faults.append("slow")
        elif self.worst > limit_ms:
            faults.append("slow once")
        if self.jump > LIMIT_PX:
            faults.append("jumps")
        return ", ".join(faults)

    def fails(self, limit_ms: float) -> bool:
        """Whether it is a reason to exit with status 1."""
        return self.median > limit_ms or self.jump > LIMIT_PX


def watch(page: Page) -> None:
    """Have every document that `page` opens from now on watched."""
    page.add_init_script(_WATCH)


def wait_until_idle(page: Page) -> None:
    """Return when the script is not running and nothing has changed for a while."""
    page.wait_for_function(
        "() => window.__repaint && window.__repaint.idle()", polling=50, timeout=_PATIENCE_MS
    )


def milliseconds(page: Page) -> float:
    """From the last key press or click to the last change after it."""
    return float(page.evaluate("window.__repaint.milliseconds()"))


def controls(page: Page) -> list[Control]:
    """The controls of the main area that can be moved now, in no particular order."""
    found = _found(page)
    on_page = {control.identity for control in found}
    for number in range(_popovers(page).count()):
        _open(page, number)
        behind = [replace(control, popover=number) for control in _found(page)]
        found += [control for control in behind if control.identity not in on_page]
        _close(page)
    return found


def _found(page: Page) -> list[Control]:
    found = [Control(**control) for control in page.evaluate(_FIND)]
    return [control for control in found if control.key not in _FILMS]


def _popovers(page: Page) -> Locator:
    return page.get_by_test_id("stMain").get_by_test_id("stPopoverButton")


def _open(page: Page, number: int | None) -> None:
    """Open the popover of this number, unless it is open; None: none."""
    body = page.get_by_test_id("stPopoverBody")
    if number is not None and not body.count():
        _popovers(page).nth(number).press("Enter")
        body.wait_for()


def _close(page: Page) -> None:
    body = page.get_by_test_id("stPopoverBody")
    if body.count():
        page.keyboard.press("Escape")
        body.wait_for(state="detached")


def moves_of(
    page: Page, control: Control, n_moves: int, after: Callable[[str], None] | None = None
) -> tuple[Move, ...]:
    """Move a control `n_moves` times; fewer if it goes away or cannot move.

    A control with more options than that is moved through all of them, up to `MOST_OPTIONS`.
    `after` is called after each measured move with the option that is chosen now.
    """
    moves: list[Move] = []
    wanted = n_moves
    while len(moves) < wanted:
        _open(page, control.popover)
        element = _locate(page, control)
        if not element.count() or element.is_disabled():
            break
        element.evaluate("element => element.scrollIntoView({ block: 'center' })")
        page.mouse.move(2, 2)  # nothing lies below the pointer
        wait_until_idle(page)
        before = _top(element)
        chosen = _move(page, control, element)
        if chosen is None:
            break
        wait_until_idle(page)
        took = milliseconds(page)
        element = _locate(page, control)
        gone = not element.count()
        moves.append(Move(took, 0.0 if gone else abs(_top(element) - before)))
        wanted = max(wanted, min(chosen.n_options, MOST_OPTIONS))
        if after is not None and chosen.n_options:
            _close(page)
            after(chosen.option)
    _close(page)
    return tuple(moves)


def _locate(page: Page, control: Control) -> Locator:
    behind = control.popover is not None
    area = page.get_by_test_id("stPopoverBody" if behind else "stMain")
    holder = area.locator(f".{control.key}") if control.key else area
    return holder.locator(control.selector).nth(control.nth)


def _top(element: Locator) -> float:
    return float(element.evaluate("element => element.getBoundingClientRect().top"))


@dataclass(frozen=True)
class Chosen:
    """The option that a move has chosen, and of how many; a slider has none."""

    option: str = ""
    n_options: int = 0


def _move(page: Page, control: Control, element: Locator) -> Chosen | None:
    """Move a control to another value; None if there is no other."""
    if control.kind == "slider":
        element.focus()
        for key in ("ArrowRight", "ArrowLeft"):
            before = element.input_value()
            page.keyboard.press(key)
            if element.input_value() != before:
                return Chosen()
        return None
    if control.kind == "checkbox":
        element.focus()
        page.keyboard.press("Space")
        return Chosen("on" if element.is_checked() else "off", 2)
    if control.kind == "selectbox":
        return _choose_from_list(page, element)
    options = element.locator(
        "[role=radio]" if control.kind == "segmented" else "[data-testid=stRadioOption]"
    )
    n_options = options.count()
    if n_options < 2:
        return None
    following = options.nth((_chosen(options) + 1) % n_options)
    text = following.inner_text().strip()
    following.click()
    return Chosen(text, n_options)


def _chosen(options: Locator) -> int:
    states = options.evaluate_all(
        "all => all.map(one => one.ariaChecked === 'true' || one.dataset.selected === 'true')"
    )
    return states.index(True) if True in states else -1


def _choose_from_list(page: Page, element: Locator) -> Chosen | None:
    """The option after the chosen one, or the first."""
    value = element.input_value()
    element.click()
    options = page.get_by_role("option")
    options.first.wait_for()
    texts = [text.strip() for text in options.all_inner_texts()]
    if len(texts) < 2:
        page.keyboard.press("Escape")
        return None
    following = ((texts.index(value) if value in texts else -1) + 1) % len(texts)
    options.nth(following).click()
    return Chosen(texts[following], len(texts))


def measure_page(page: Page, name: str, url: str, n_moves: int) -> list[Row]:
    """All controls of one page, also those that appear under some option of another."""
    rows: list[Row] = []
    seen: set[tuple[str, str, int]] = set()

    def sweep(under: str) -> None:
        fresh = [control for control in controls(page) if control.identity not in seen]
        seen.update(control.identity for control in fresh)
        for control in fresh:
            moves = moves_of(page, control, n_moves, sweep)
            if moves:
                rows.append(Row(name, under, control.name, moves))
            else:  # perhaps another one has made it go away, and a third brings it back
                seen.discard(control.identity)

    page.goto(url)
    wait_until_idle(page)
    sweep("")
    return rows


def report_of(rows: Sequence[Row], limit_ms: float) -> str:
    """The table of all rows."""
    heading = ("page", "under", "control", "moves", "median ms", "worst ms", "jump px", "verdict")
    lines = [
        (
            row.page,
            row.under,
            row.control,
            str(len(row.moves)),
            f"{row.median:.0f}",
            f"{row.worst:.0f}",
            f"{row.jump:.0f}",
            row.verdict(limit_ms),
        )
        for row in rows
    ]
    return table([heading, *lines])


@contextmanager
def _watched_page() -> Iterator[Page]:
    with chromium() as browser:
        page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        page.set_default_timeout(_PATIENCE_MS)
        watch(page)
        yield page


def addresses(page: Page, url: str) -> list[str]:
    """Every page of the site, from its navigation."""
    page.goto(url)
    wait_until_idle(page)
    links = page.get_by_test_id("stSidebarNavLink")
    links.first.wait_for()
    return [str(link) for link in links.evaluate_all("all => all.map(one => one.href)")]


def chosen_addresses(found: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Names and addresses of the pages named, all if none is; "home" is the first.

    Raises: ValueError for a name that is no page.
    """
    by_name = {address.rstrip("/").rpartition("/")[2]: address for address in found[1:]}
    by_name = {"home": found[0], **by_name}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ValueError(f"no page is called {unknown[0]!r}; there are {', '.join(by_name)}")
    return {name: by_name[name] for name in names or by_name}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the pages and print the table; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repaint")
    parser.add_argument("pages", nargs="*", help="addresses such as block; all if none is given")
    parser.add_argument("--moves", type=int, default=MOVES, help="moves of every control")
    parser.add_argument("--limit", type=float, default=LIMIT_MS, help="milliseconds of a median")
    options = parser.parse_args(arguments)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    print(f"{machine()}; {os.cpu_count()} cores")
    print("Absolute times: another busy process on this machine spoils them.\n", flush=True)
    rows: list[Row] = []
    with site() as url, _watched_page() as page:
        try:
            chosen = chosen_addresses(addresses(page, url), options.pages)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        # what any page loads, models above all, is there before the first measurement
        for address in dict.fromkeys([f"{url}/heads", *chosen.values()]):
            page.goto(address)
            wait_until_idle(page)
        for name, address in chosen.items():
            rows += measure_page(page, name, address, options.moves)
            print(f"{name}: {len(rows)} controls so far", file=sys.stderr, flush=True)
    if not rows:
        print("There is no control on these pages.")
        return 0
    print(report_of(rows, options.limit))
    failed = [row for row in rows if row.fails(options.limit)]
    print(
        f"\n{len(failed)} of {len(rows)} controls have a median over {options.limit:.0f} ms or "
        f"jump over {LIMIT_PX:.0f} px"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
