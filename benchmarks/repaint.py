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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.browser import chromium, site
from benchmarks.controls import Move, controls, moves_of
from benchmarks.painting import PATIENCE_MS, wait_until_idle, watch
from benchmarks.timing import machine, table

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIMIT_MS = 500.0
LIMIT_PX = 2.0
MOVES = 5
WINDOW = {"width": 1440, "height": 1000}


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
        page.set_default_timeout(PATIENCE_MS)
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
