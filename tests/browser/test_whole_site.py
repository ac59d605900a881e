"""Test every page, with all sections open, for axe-core violations, layout shifts and width."""

from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Page, expect

from benchmarks.browser import ROOT, Site
from tests.helpers.browser import PATHS, PHONE, PROJECTOR, press, settings
from tests.helpers.visitors import wait_until_settled
from ui.frame.page_assets import SCRIPT, STYLE
from ui.widgets.section_picker import ALL_SECTIONS

COMPARE = {folder.name for folder in (ROOT / "pages/compare").iterdir()}
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"

# (Rule, excluded Streamlit element, reason). The test fails if no page needs an exclusion.
EXCEPTIONS = [
    # Streamlit puts the navigation's section headings between the list and its items.
    ("list", "[data-testid=stSidebarNavItems]"),
    ("listitem", "[data-testid=stSidebarNavItems] li"),
    # WCAG 1.4.3 exempts disabled controls; axe-core doesn't know that the label belongs to one.
    ("color-contrast", "label[data-testid=stWidgetLabel][disabled]"),
]

OPEN_EXPANDERS = """
() => document.querySelectorAll("[data-testid=stExpander] details:not([open]) > summary")
        .forEach((summary) => summary.click())
"""

# The top of the first picture (or of the printable sheet), in pixels from the top of the page.
FIRST_PICTURE = """
() => {
  const main = document.querySelector("[data-testid=stMain]"), tops = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      if (!["CANVAS", "svg"].includes(element.tagName) && !element.matches(".sheet")) continue;
      const { top, width, height } = element.getBoundingClientRect();
      if (width >= 120 && height >= 80) tops.push(top + main.scrollTop);
    }
  };
  walk(main);
  return tops.length ? Math.min(...tops) : null;
}
"""
WITHOUT_A_PICTURE = ("/models", "/glossary")
BY_ON_A_DESK, BY_ON_A_PHONE = 0.6 * PROJECTOR["height"], 0.6 * PHONE["height"]

# Maximum page length when it opens, in windows. On a longer page you lose sight of the picture that
# the text describes. Everything else is in other sections or closed expanders.
MOST_ON_A_DESK, MOST_ON_A_PHONE = 2.5, 5.0
WINDOWS = "document.querySelector('[data-testid=stMain]').scrollHeight / innerHeight"

# Layout shift while a page loads: the sum of the browser's layout shift scores (the share of the
# window that moved, times the distance as a share of the window). An empty Streamlit element in the
# navigation disappears invisibly. Elements without a name in the browser's report are in a drawing.
MOST_SHIFTED = 0.05
COUNT_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  const isOurs = ({ node }) => !node?.parentElement?.closest(".stSidebar");
  for (const { value, sources } of list.getEntries()) {
    if (sources.some(isOurs)) window.shifted += value;
  }
}).observe({ type: "layout-shift", buffered: true });
"""

# Labels that are truncated with an ellipsis.
CUT_OFF = """
() => [...document.querySelectorAll("[data-testid=stMain] *")]
        .filter((element) => getComputedStyle(element).textOverflow === "ellipsis" &&
                element.scrollWidth > element.clientWidth + 1 && element.checkVisibility())
        .map((element) => element.textContent)
"""

INSIDE = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"

IN_THEME = """
(theme) => getComputedStyle(document.querySelector("[data-testid=stApp]")).colorScheme === theme
"""

# Serious and critical violations, and the exclusions that applied. Elements that are being painted
# get some time.
CHECK = """
async ([exceptions, part, options, patience]) => {
  const end = performance.now() + patience;
  for (;;) {
    const { violations } = await axe.run(part, { ...options, elementRef: true });
    const found = [], met = [];
    for (const { id, impact, nodes } of violations) {
      if (impact !== "serious" && impact !== "critical") continue;
      for (const { element, html, any, all, none } of nodes) {
        const which = exceptions.findIndex(([rule, css]) => rule === id && element.closest(css));
        if (which >= 0) met.push(which);
        else found.push([id, html.slice(0, 200), [...any, ...all, ...none][0]?.message]);
      }
    }
    if (!found.length || performance.now() > end) return { found, met };
    await new Promise(requestAnimationFrame);
  }
}
"""


def late_pictures(page: Page, by: float) -> dict[str, float | None]:
    """Return the page and its first picture's position, if that is below the limit."""
    top = page.evaluate(FIRST_PICTURE)
    path = page.url.partition("?")[0]
    in_time = path.endswith(WITHOUT_A_PICTURE) or (top is not None and top <= by)
    return {} if in_time else {path: top}


def long_pages(page: Page, most: float) -> dict[str, float]:
    """Return the page and its length, if it's longer than the limit (in windows)."""
    windows = page.evaluate(WINDOWS)
    return {} if windows <= most else {page.url.partition("?")[0]: windows}


def shifting_pages(page: Page) -> dict[str, float]:
    """Return the page and its layout shift since it was opened, if there is any."""
    shifted = page.evaluate("window.shifted")
    return {} if shifted <= MOST_SHIFTED else {page.url.partition("?")[0]: shifted}


def show_everything(page: Page) -> bool:
    """Show all sections of the page. Return whether it has several."""
    everything = page.get_by_test_id("stMain").get_by_role("radio", name=ALL_SECTIONS)
    for choice in everything.all():
        press(choice, "Space")
    return everything.count() > 0


def check(page: Page, *rules: str, part: str = "html", patience_ms: int = 30_000) -> dict[str, Any]:
    """Return the violations of the rules (default: all) that remain in a part after a while."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    return page.evaluate(CHECK, [EXCEPTIONS, part, options, patience_ms])


def test_no_page_has_serious_violations(own_page: Page, site: Site):
    """Check the Compare pages in both themes, and alternate themes for the others.

    The test also checks where each page's first picture starts, the page's length and layout shift,
    truncated labels in projector view, and whether everything fits on a phone.
    """
    own_page.add_init_script(path=AXE)
    own_page.add_init_script(COUNT_SHIFTS)
    own_page.set_viewport_size(PROJECTOR)
    violations, met, late, long, jumps = {}, set(), {}, {}, {}
    sticking_out, hidden, cut_off = [], [], {}
    for number, path in enumerate(PATHS):
        compared = path.strip("/").replace("-", "_") in COMPARE
        themes = ("light", "dark") if compared else (("light", "dark")[number % 2],)
        own_page.emulate_media(color_scheme=themes[0])
        own_page.goto(site.url + path)
        wait_until_settled(own_page)
        # waits for content above it, see layout_shift.js
        if own_page.locator("[data-waits]").count():
            hidden.append(path)
        jumps |= shifting_pages(own_page)
        late |= late_pictures(own_page, BY_ON_A_DESK)
        long |= long_pages(own_page, MOST_ON_A_DESK)
        if show_everything(own_page):
            wait_until_settled(own_page)
        own_page.evaluate(OPEN_EXPANDERS)
        wait_until_settled(own_page)  # some expanders load their content when they're opened
        # the frame is the same on all pages, so it's checked once per theme
        part = "html" if number < 2 else "[data-testid=stMain]"
        for theme in themes:
            own_page.emulate_media(color_scheme=theme)
            own_page.wait_for_function(IN_THEME, arg=theme)
            # only colors depend on the theme
            rules = ["color-contrast"] if compared and theme == "dark" else []
            checked = check(own_page, *rules, part=part)
            met.update(checked["met"])
            if checked["found"]:
                violations[f"{path} {theme}"] = checked["found"]
        if labels := own_page.evaluate(CUT_OFF):
            cut_off[path] = labels
        buttons = own_page.get_by_test_id("stMain").get_by_test_id("stPopoverButton")
        for button in range(buttons.count()):
            with settings(own_page, button):
                # the frame was checked above
                result = check(own_page, part="[data-testid=stPopoverBody]")["found"]
                if result:
                    violations[f"{path}, settings {button}"] = result
        own_page.set_viewport_size(PHONE)
        wait_until_settled(own_page)
        if not own_page.evaluate(INSIDE):
            sticking_out.append(path)
        own_page.goto("about:blank")  # otherwise the page would be laid out again
        own_page.set_viewport_size(PROJECTOR)
    assert hidden == []
    assert cut_off == {}
    assert sticking_out == []
    assert jumps == {}
    assert late == {}
    assert long == {}
    assert violations == {}
    assert met == set(range(len(EXCEPTIONS)))


def test_every_page_on_a_phone(own_page: Page, site: Site):
    """Nothing shifts while the page opens, and its picture is near the top.

    Overflow is checked above, where the whole page is open.
    """
    own_page.add_init_script(COUNT_SHIFTS)
    own_page.set_viewport_size(PHONE)
    late, long, jumps = {}, {}, {}
    for path in PATHS:
        own_page.goto(site.url + path)
        wait_until_settled(own_page)
        jumps |= shifting_pages(own_page)
        late |= late_pictures(own_page, BY_ON_A_PHONE)
        long |= long_pages(own_page, MOST_ON_A_PHONE)
    assert jumps == {}
    assert late == {}
    assert long == {}


GO = """
(path) => {
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}
"""


def test_every_page_is_reachable_without_a_reload(page: Page, site: Site):
    """Navigate like the back button, before the page in between is complete."""
    first, *others = PATHS
    page.goto(site.url + first)
    wait_until_settled(page)
    page.evaluate("window.loadedOnce = true")
    heading = page.get_by_role("heading", level=1)
    for path in others:
        before = heading.inner_text()
        page.evaluate(GO, path)
        expect(heading).not_to_have_text(before)
    wait_until_settled(page)
    assert page.evaluate("window.loadedOnce")


def test_content_below_a_placeholder_waits_for_it(own_page: Page):
    """Build elements like Streamlit's: `a` above `b`; in two columns, `c` above `d`, and `e`."""

    def element(name: str) -> str:
        return f"<div data-testid=stElementContainer><p id={name}>{name}</p></div>"

    def column(*names: str) -> str:
        return f"<div data-testid=stColumn>{''.join(map(element, names))}</div>"

    own_page.clock.install()
    columns = f"<div data-testid=stLayoutWrapper>{column('c', 'd')}{column('e')}</div>"
    own_page.set_content(f"<style>{STYLE}</style><div class=stMain></div><script>{SCRIPT}</script>")

    def visible_after(change: str) -> str:
        own_page.evaluate(change)
        return own_page.evaluate(
            "[...document.querySelectorAll('p')].filter((p) => p.checkVisibility("
            "{ visibilityProperty: true })).map((p) => p.id).join('')"
        )

    def add_placeholder(name: str) -> str:
        return f"document.getElementById('{name}').innerHTML = '<i data-testid=stSkeleton></i>'"

    def remove_placeholder(name: str) -> str:
        return f"document.getElementById('{name}').replaceChildren()"

    own_page.set_viewport_size(PROJECTOR)
    write = f"document.querySelector('.stMain').innerHTML = `{element('a')}{element('b')}{columns}`"
    assert visible_after(f"{write}; {add_placeholder('a')}; {add_placeholder('c')}") == "a"
    assert visible_after(remove_placeholder("a")) == "abce", "the columns are side by side"
    assert visible_after(remove_placeholder("c")) == "abcde"
    assert visible_after(add_placeholder("a")) == "abcde", "visible content stays visible"
    own_page.set_viewport_size(PHONE)
    assert visible_after(f"{write}; {add_placeholder('c')}") == "abc", "the columns are stacked"
    run = "document.querySelector('.stMain').dataset.testScriptState ="
    own_page.evaluate(f"{run} 'running'")
    own_page.clock.fast_forward(7_000)
    assert visible_after("") == "abc", "the page is still being built"
    own_page.evaluate(f"{run} 'notRunning'")
    own_page.clock.fast_forward(4_000)
    assert visible_after("document.querySelector('#a').append('more')") == "abc"
    own_page.clock.fast_forward(4_000)
    assert visible_after("") == "abc", "the page is still changing"
    own_page.clock.fast_forward(3_000)
    assert visible_after("") == "abcde", "nothing waits forever"
    assert visible_after(f"{run} 'running'; {write}; {remove_placeholder('c')}") == "abcde"
    row = "document.querySelector('.stMain > :last-child').dataset.testid = 'stHorizontalBlock'"
    own_page.set_viewport_size(PROJECTOR)
    places = "[...document.querySelectorAll('[data-testid=stColumn]')]"
    assert visible_after(f"{write}; {row}; {places}.at(0).replaceChildren()") == "abe"
    below = f"document.querySelector('.stMain').insertAdjacentHTML('beforeend', `{element('f')}`)"
    all_empty = f"{places}.forEach((place) => place.replaceChildren())"
    assert visible_after(f"{write}; {row}; {all_empty}; {below}") == "ab", (
        "a row that is still empty"
    )
    own_page.set_viewport_size(PHONE)
    empty = "document.querySelector('[data-testid=stColumn]').replaceChildren()"
    assert visible_after(f"{write}; {empty}") == "ab", (
        "the first column is written after the second"
    )
    assert visible_after(f"{run} 'notRunning'") == "abe", "the column stays empty"
    own_page.set_viewport_size(PROJECTOR)
    row = "<div data-testid=stLayoutWrapper><div data-testid=stHorizontalBlock>{}</div></div>"
    two_places = row.format(column("a") + column()) + row.format(column())
    two_places = f"document.querySelector('.stMain').innerHTML = `{two_places}`"
    chart, below = f"{places}.at(0).innerHTML += `{element('c')}`", f"{places}.at(-1).innerHTML ="
    assert visible_after(f"{run} 'running'; {two_places}") == "a"
    assert visible_after(f"{chart}; {add_placeholder('c')}; {below} `{element('f')}`") == "ac", (
        "it was empty before"
    )
    assert visible_after(remove_placeholder("c")) == "acf"


def test_shorter_page_keeps_scroll_position(own_page: Page):
    own_page.set_viewport_size(PROJECTOR)
    document = (
        "<style>body { margin: 0 } .stMain { height: 100vh; overflow: auto } </style>"
        "<div class=stMain><div class=stMainBlockContainer><div id=part></div></div></div>"
        f"<script>{SCRIPT}</script>"
    )
    address = "http://site.test/first"
    own_page.route(address, lambda route: route.fulfill(body=document, content_type="text/html"))
    own_page.goto(address)

    def end(change: str) -> int:
        """Return the page offset of the window's bottom edge after the change is painted."""
        frame = "await new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        return own_page.evaluate(
            "async () => { const main = document.querySelector('.stMain'), "
            "part = document.querySelector('#part'); "
            f"{change}; {frame}; {frame}; return main.scrollTop + main.clientHeight }}"
        )

    assert end("part.style.height = '3000px'; main.scrollTop = 9999") == 3000
    assert end("part.style.height = '900px'") == 3000
    # space below the window is released
    assert end("main.scrollTop = 1000") == 1000 + PROJECTOR["height"]
    assert end("main.scrollTop = 9999") == 1000 + PROJECTOR["height"]
    # another page starts at its top, with its own length
    assert end("history.pushState({}, '', '/second'); part.append('x')") == PROJECTOR["height"]
    assert end("main.scrollTop = 9999") == 900
