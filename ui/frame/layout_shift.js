// @ts-check
// Shows a page from the top down. An element that is still loading has no height yet, so the elements
// below it would jump. So style.css hides them until then. Once an element is visible, it stays
// visible.
{
  const byName = (/** @type {string} */ name) => `[data-testid=${name}]`;
  const RUNNING = "[data-test-script-state]:not([data-test-script-state=notRunning])";
  const EMPTY = `:not(:has(${["stElementContainer", "stPopover", "stExpander"].map(byName).join()}))`;
  const EMPTY_COLUMN = `[data-testid=stColumn]${EMPTY}`;
  const EMPTY_PLACE = `:is([data-testid=stLayoutWrapper], [data-testid=stColumn])${EMPTY}`;
  // Widgets whose script is loading, canvases and charts that aren't drawn yet, and columns that the
  // page run hasn't reached yet
  const BEING_MADE = [
    "[data-testid=stSkeleton]",
    "[data-testid=stBidiComponentIsolated]:not([data-drawn])",
    ".stVegaLiteChart:empty",
    `${RUNNING} :is([data-testid=stHorizontalBlock]${EMPTY}, ${EMPTY_COLUMN})`,
  ].join();
  const PLACES = ["stElementContainer", "stLayoutWrapper", "stColumn"].map(byName).join();
  // The wait has a time limit, because an element above may never load. To allow for slow machines,
  // the clock starts at the page's last change and stops during a page run.
  const LONGEST_MS = 6000;
  let changed = 0;
  /** @type {WeakSet<Element>} */
  const shown = new WeakSet();

  /** Columns are next to each other, so they don't wait. On a phone, they're stacked. */
  const isBeside = (/** @type {Element} */ place) =>
    place.matches("[data-testid=stColumn]") && matchMedia("(min-width: 640.1px)").matches;

  const show = () => {
    const main = document.querySelector(".stMain");
    if (!main) return;
    /** @type {Set<Element>} */
    const waiting = new Set();
    for (const made of main.querySelectorAll(BEING_MADE)) {
      if (isBeside(made)) continue;
      for (let place = made; place !== main && place.parentElement; place = place.parentElement) {
        if (isBeside(place)) continue;
        let below = place.nextElementSibling;
        for (; below && !waiting.has(below); below = below.nextElementSibling) waiting.add(below);
      }
    }
    for (const place of main.querySelectorAll(PLACES)) {
      const waits = waiting.has(place) && !shown.has(place);
      // an empty place isn't visible yet: when it's filled, it may still have to wait
      if (!waits && !place.matches(EMPTY_PLACE)) shown.add(place);
      if (waits && !place.hasAttribute("data-waits")) setTimeout(showAnyway, LONGEST_MS, place);
      place.toggleAttribute("data-waits", waits);
    }
  };

  const showAnyway = (/** @type {Element} */ place) => {
    const still = performance.now() - changed;
    const waits = place.hasAttribute("data-waits");
    if (waits && (still < LONGEST_MS || document.querySelector(RUNNING))) {
      setTimeout(showAnyway, LONGEST_MS - (still % LONGEST_MS), place);
      return;
    }
    shown.add(place);
    if (waits) show();
  };

  new MutationObserver(() => {
    changed = performance.now();
    show();
  }).observe(document.body, {
    subtree: true,
    childList: true,
    attributeFilter: ["data-drawn", "data-test-script-state"],
  });
}
