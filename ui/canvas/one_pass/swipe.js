// @ts-check
// A finger that goes to the left or to the right over the picture of one pass leads to the next layer
// or head, or to the one before. Up and down it scrolls the page, as everywhere: see touch-action.

/** @typedef {{ x: number, y: number, from: Place }} Finger where it was put down */
/** @type {WeakMap<HTMLCanvasElement, Finger>} kept while a picture is drawn anew under it */
const FINGERS = new WeakMap();

const LEAST_SWIPE = 40, // CSS pixels
  STEEPEST = 0.5; // of the way across may go up or down

/**
 * `here`: where the visitor is; what the finger points at on its way does not count. `turn`: go one
 * layer or head on (1) or back (-1) from there.
 * @type {(canvas: HTMLCanvasElement, listen: Listen, here: () => Place,
 *         turn: (from: Place, by: number) => void) => void}
 */
function swiper(canvas, listen, here, turn) {
  const forget = () => FINGERS.delete(canvas);
  listen(canvas, "pointerdown", ({ pointerType, isPrimary, clientX: x, clientY: y }) => {
    if (pointerType === "touch" && isPrimary) FINGERS.set(canvas, { x, y, from: here() });
    else forget(); // no second finger
  });
  listen(canvas, "pointercancel", forget); // the page scrolls
  listen(canvas, "pointerup", ({ clientX, clientY }) => {
    const begun = FINGERS.get(canvas);
    if (!begun) return;
    const { x, y, from } = begun,
      across = clientX - x;
    forget();
    if (Math.abs(across) < LEAST_SWIPE) return;
    if (Math.abs(clientY - y) <= STEEPEST * Math.abs(across)) turn(from, across < 0 ? 1 : -1);
  });
}
