"""The controls of a page in a browser: what there is to move, and every move with its time.

A control stands on the page or behind a button of it (a popover). `benchmarks.repaint` moves all
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.painting import milliseconds, wait_until_idle

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MOST_OPTIONS = 12
# New tokens of One pass: the model writes them twice and times every pass, and the picture plays
# the passes as long as they took.
_FILMS = {"st-key-one_pass_new"}

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
