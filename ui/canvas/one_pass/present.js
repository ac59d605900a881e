// @ts-check
// Shows the one-pass picture in full screen with larger text, or in the whole window if the browser
// doesn't allow full screen.

const STORY = 118, // height of the tour with a two-line caption, before it's measured
  LEGIBLE = 330, // minimum height of a picture without the tour
  LARGEST_TYPE = 1.5, // relative to the page
  WIDE_ENOUGH = 640, // CSS pixels; in a smaller window the picture looks the same as on the page
  HIGH_ENOUGH = 480;

/**
 * The area for the picture on its canvas. `zoom`: CSS pixels per layout unit. `top`: CSS pixels above the
 * picture, for the bar. `width`, `room`: the available width and height in layout units; if `room` is 0,
 * the height is up to `most`. `high`: the height of the canvas in CSS pixels, or 0 for the picture's.
 * @typedef {{ zoom: number, top: number, width: number, room: number, most: number, high: number }} Stage
 */

/**
 * The full-screen button of a figure. `out` zooms the picture out by one level and returns whether
 * that was possible; `changed` is called when the stage changes.
 * @type {(figure: HTMLElement, listen: Listen, out: () => boolean, changed: () => void) =>
 *         { stage: () => Stage, stop: () => void }}
 */
function createPresenter(figure, listen, out, changed) {
  const button = element(figure, ".present"),
    holder = element(figure, ".scroll"),
    bar = element(figure, ".way"),
    below = [".next", ".story", ".foot"].map((part) => element(figure, part)),
    root = /** @type {Document | ShadowRoot} */ (figure.getRootNode());
  /** @type {{ lock: (keys: string[]) => Promise<void>, unlock: () => void } | undefined} */
  const keyboard = /** @type {any} */ (navigator).keyboard;
  const presenting = () => "presenting" in figure.dataset;

  /** @returns {Stage} */
  function stage() {
    const width = Math.max(holder.clientWidth, 300);
    if (figure.dataset.presenting !== "wide")
      return { zoom: 1, top: 0, width, room: 0, most: above(), high: 0 };
    const zoom = zoomNow(),
      high = figure.clientHeight,
      top = bar.offsetTop + bar.offsetHeight;
    const ends = below.filter((part) => part.offsetHeight).map((part) => part.offsetTop);
    const room = (Math.min(...ends) - top) / zoom;
    return { zoom, top, width: width / zoom, room, most: Infinity, high };
  }

  /** The maximum height of the picture in a low window, so that the readout or the tour fits below it. */
  function above() {
    const told = Number(figure.dataset.told ?? -1) >= 0,
      part = element(figure, told ? ".story" : ".foot"),
      scrolled = document.querySelector(".stMain")?.scrollTop ?? scrollY,
      begins = holder.getBoundingClientRect().top + scrolled;
    return Math.max(innerHeight - begins - (part.offsetHeight || STORY), told ? 0 : LEGIBLE);
  }

  const zoomNow = () => Math.min(innerWidth / WIDE_ENOUGH, innerHeight / HIGH_ENOUGH, LARGEST_TYPE);

  let told = "";
  /** Lay out the figure for the current window. */
  function fit() {
    if (presenting()) {
      const zoom = zoomNow();
      figure.dataset.presenting = zoom < 1 ? "narrow" : "wide";
      figure.style.setProperty("--zoom", String(Math.max(zoom, 1)));
    }
    button.textContent = presenting() ? "Exit full screen" : "Full screen";
    const now = JSON.stringify(stage());
    if (now !== told) changed();
    told = now;
  }

  async function begin() {
    figure.dataset.presenting = "wide";
    fit();
    element(figure, "canvas").focus();
    try {
      await figure.requestFullscreen();
      // if the browser allows it, Escape first goes back within the picture, as on the page
      await keyboard?.lock(["Escape"]);
    } catch {
      // not allowed or not supported, so the figure just covers the window
    }
  }

  function end() {
    delete figure.dataset.presenting;
    keyboard?.unlock();
    if (root.fullscreenElement === figure) document.exitFullscreen();
    fit();
    figure.scrollIntoView({ block: "nearest" }); // the page was shorter in full screen
  }

  listen(button, "click", () => (presenting() ? end() : begin()));
  listen(figure, "fullscreenchange", () => {
    if (presenting() && root.fullscreenElement !== figure) end();
    else fit();
  });
  // Escape that the picture itself didn't handle, for example on a button. The listener is on the window
  // because a button loses the focus when it's disabled.
  listen(window, "keydown", (event) => {
    if (event.key !== "Escape" || !presenting()) return;
    event.preventDefault();
    if (!out()) end();
  });
  listen(window, "resize", fit);
  const observer = new ResizeObserver(fit);
  for (const part of [figure, bar, ...below]) observer.observe(part);
  fit();
  return { stage, stop: () => observer.disconnect() };
}
