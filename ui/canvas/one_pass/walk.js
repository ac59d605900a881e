// @ts-check
// Animates opening and going back: every item moves from its old position to the new one.

const WALK_MS = 320;

/** @typedef {Item & { origin?: string }} Placed */

/**
 * `items`: the items as painted now. `to`: animate to these items. `place`: move them there immediately.
 * @typedef {{
 *   items: () => Map<string, Item>, isMoving: () => boolean, stop: () => void,
 *   to: (placed: Map<string, Placed>, animated: boolean) => void,
 *   place: (placed: Map<string, Placed>) => void,
 * }} Walk
 */

/** @type {(canvas: HTMLCanvasElement, first: Map<string, Item>, draw: () => void) => Walk} */
function startWalk(canvas, first, draw) {
  let items = first,
    /** @type {Map<string, Item>} */ from = new Map(),
    /** @type {Map<string, Item>} */ goal = new Map(),
    began = 0,
    frame = 0;
  const PARTS = /** @type {const} */ (["x", "y", "w", "h", "alpha"]);

  /** Whether any item has moved, appeared or disappeared. */
  const moves = () =>
    items.size !== goal.size ||
    [...goal].some(([name, end]) => PARTS.some((part) => items.get(name)?.[part] !== end[part]));

  /** @param {number} now */
  function step(now) {
    const share = Math.min((now - began) / WALK_MS, 1),
      eased = share * share * (3 - 2 * share);
    const interpolate = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * eased;
    items = new Map();
    for (const [name, start] of from) {
      const end = goal.get(name) ?? { ...start, alpha: 0 };
      if (share === 1 && !goal.has(name)) continue;
      items.set(name, {
        ...end,
        x: interpolate(start.x, end.x),
        y: interpolate(start.y, end.y),
        w: interpolate(start.w, end.w),
        h: interpolate(start.h, end.h),
        alpha: interpolate(start.alpha, end.alpha),
      });
    }
    frame = share < 1 ? requestAnimationFrame(step) : 0;
    draw();
    canvas.toggleAttribute("data-walking", share < 1);
  }

  return {
    items: () => items,
    isMoving: () => frame !== 0,
    stop: () => cancelAnimationFrame(frame),
    place: (placed) => {
      items = new Map(placed);
    },
    to: (placed, animated) => {
      from = new Map(items);
      goal = placed;
      for (const [name, item] of placed) {
        if (from.has(name)) continue;
        const { x, y, w, h } = from.get(item.origin ?? "") ?? item; // new items grow out of their origin
        from.set(name, { ...item, x, y, w, h, alpha: 0 });
      }
      began = performance.now();
      if (!animated || !items.size || !moves()) {
        items = new Map(goal);
        draw();
      } else if (!frame) frame = requestAnimationFrame(step);
    },
  };
}
