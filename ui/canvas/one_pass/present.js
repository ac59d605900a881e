// @ts-check
// The picture of one pass presented: over the whole screen, or the whole window where a browser gives
// no screen, with larger type.

const STORY = 118, // how high the story is with a caption of two lines, before it is there
  LEGIBLE = 330, // a picture without a story is made no lower than this, however low the window
  LARGEST_TYPE = 1.5, // times as large as on the page
  WIDE_ENOUGH = 640, // CSS pixels; a smaller window shows the picture as the page does, below the bar
  HIGH_ENOUGH = 480;

/**
 * Where the picture is painted on its canvas. `zoom`: CSS pixels for a unit of the layout. `top`: CSS
 * pixels above the picture, for the bar. `width`, `room`: what the layout has, in its units; no room
 * is as much as it wants, up to `most`. `high`: how high the canvas is in CSS pixels; 0: as high as
 * the picture.
 * @typedef {{ zoom: number, top: number, width: number, room: number, most: number, high: number }} Stage
 */

/**
 * The button that presents a figure, and ends that. `out` takes the picture one level outwards and
 * says whether it could; `changed` is called when the picture has another stage.
 * @type {(figure: HTMLElement, listen: Listen, out: () => boolean, changed: () => void) =>
 *         { stage: () => Stage, stop: () => void }}
 */
function presenter(figure, listen, out, changed) {
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

  /** How high the picture may be in a low window, so that what is read lies below it, or the story. */
  function above() {
    const told = Number(figure.dataset.told ?? -1) >= 0,
      part = element(figure, told ? ".story" : ".foot"),
      scrolled = document.querySelector(".stMain")?.scrollTop ?? scrollY,
      begins = holder.getBoundingClientRect().top + scrolled;
    return Math.max(innerHeight - begins - (part.offsetHeight || STORY), told ? 0 : LEGIBLE);
  }

  const zoomNow = () => Math.min(innerWidth / WIDE_ENOUGH, innerHeight / HIGH_ENOUGH, LARGEST_TYPE);

  let told = "";
  /** Lay the figure out for the window as it is now. */
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
      // where a browser allows it Escape leads out of the picture first, as on the page
      await keyboard?.lock(["Escape"]);
    } catch {
      // refused, or unknown to this browser: the figure lies over the window as it is
    }
  }

  function end() {
    delete figure.dataset.presenting;
    keyboard?.unlock();
    if (root.fullscreenElement === figure) document.exitFullscreen();
    fit();
    figure.scrollIntoView({ block: "nearest" }); // the page was shorter without it
  }

  listen(button, "click", () => (presenting() ? end() : begin()));
  listen(figure, "fullscreenchange", () => {
    if (presenting() && root.fullscreenElement !== figure) end();
    else fit();
  });
  // What the picture itself did not take: Escape on a button, or where there is no way out any more.
  // A button that was disabled has lost the focus, so all of the window is heard.
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
