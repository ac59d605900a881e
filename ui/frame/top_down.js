// @ts-check
// A page appears from the top down. What is still being made has no height yet, and what stands below
// it would jump: it waits, hidden by style.css. What was shown once stays shown.
{
  const byName = (/** @type {string} */ name) => `[data-testid=${name}]`;
  const RUNNING = "[data-test-script-state]:not([data-test-script-state=notRunning])";
  const EMPTY = `:not(:has(${["stElementContainer", "stPopover", "stExpander"].map(byName).join()}))`;
  const EMPTY_COLUMN = `[data-testid=stColumn]${EMPTY}`;
  const EMPTY_PLACE = `:is([data-testid=stLayoutWrapper], [data-testid=stColumn])${EMPTY}`;
  // A widget whose script is on its way; a drawing and a chart before they are drawn; a column, and a
  // row of columns, that the run of the page has not come to yet.
  const BEING_MADE = [
    "[data-testid=stSkeleton]",
    "[data-testid=stBidiComponentIsolated]:not([data-drawn])",
    ".stVegaLiteChart:empty",
    `${RUNNING} :is([data-testid=stHorizontalBlock]${EMPTY}, ${EMPTY_COLUMN})`,
  ].join();
  const PLACES = ["stElementContainer", "stLayoutWrapper", "stColumn"].map(byName).join();
  // Nothing waits for ever: what is above may never be made. A busy machine only needs longer: the time
  // is counted from the page's last change, and while no run of the page goes on.
  const LONGEST_MS = 6000;
  let changed = 0;
  /** @type {WeakSet<Element>} */
  const shown = new WeakSet();

  /** Columns stand beside each other, and wait for nothing; on a phone below each other. */
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
      // nobody has seen a place that is still empty: filled later, it waits for what is above it then
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
