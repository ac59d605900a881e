// @ts-check
// Swiping left or right over the one-pass picture opens the next or previous layer or head. Swiping up or
// down scrolls the page as usual (see touch-action).

/** @typedef {{ x: number, y: number, from: Place }} Finger the start of a swipe */
/** @type {WeakMap<HTMLCanvasElement, Finger>} by canvas, so that it survives a new picture */
const FINGERS = new WeakMap();

const MIN_SWIPE = 40, // CSS pixels
  STEEPEST = 0.5; // maximum vertical distance relative to the horizontal one

/**
 * `here`: the visitor's location at the start of the swipe. `turn`: go one layer or head forward (1) or
 * back (-1) from there.
 * @type {(canvas: HTMLCanvasElement, listen: Listen, here: () => Place,
 *         turn: (from: Place, by: number) => void) => void}
 */
function createSwiper(canvas, listen, here, turn) {
  const forget = () => FINGERS.delete(canvas);
  listen(canvas, "pointerdown", ({ pointerType, isPrimary, clientX: x, clientY: y }) => {
    if (pointerType === "touch" && isPrimary) FINGERS.set(canvas, { x, y, from: here() });
    else forget(); // ignore a second finger
  });
  listen(canvas, "pointercancel", forget); // the page scrolls
  listen(canvas, "pointerup", ({ clientX, clientY }) => {
    const begun = FINGERS.get(canvas);
    if (!begun) return;
    const { x, y, from } = begun,
      across = clientX - x;
    forget();
    if (Math.abs(across) < MIN_SWIPE) return;
    if (Math.abs(clientY - y) <= STEEPEST * Math.abs(across)) turn(from, across < 0 ? 1 : -1);
  });
}
