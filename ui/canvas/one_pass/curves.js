// @ts-check
// The geometry of curves and dots, for both painting and hit testing.

const CURVE_SHARE = 0.7, // a curve ends after this share of a layer, before the feed-forward dot
  DOT_SHARE = 0.86,
  NEAR = 7; // CSS pixels: the maximum distance for pointing at a curve

/** @type {(size: Size, slab: Item) => [number, number]} the start of a layer and its length */
const spanOf = (size, slab) => (size.phone ? [slab.y, slab.h] : [slab.x, slab.w]);

/** @typedef {{ from: [number, number], bend: [number, number], late: [number, number], to: [number, number] }} Curve */

/** @type {(size: Size, slab: Item, edge: Edge) => Curve} */
function curveOf(size, slab, { query, key }) {
  const [begin, long] = spanOf(size, slab),
    end = begin + long * CURVE_SHARE,
    middle = (begin + end) / 2,
    [from, to] = [middleOf(size, key), middleOf(size, query)];
  return {
    from: point(size, begin, from),
    bend: point(size, middle, from),
    late: point(size, middle, to),
    to: point(size, end, to),
  };
}

/** @type {(size: Size, edge: Edge) => number} the thickness of a curve, which shows its share */
const thicknessOf = (size, { share }) => Math.min(0.8 + 13 * share, Math.max(size.pitch * 0.5, 3));

/** @type {(size: Size, slab: Item, token: number) => [number, number]} */
function dotOf(size, slab, token) {
  const [begin, long] = spanOf(size, slab);
  return point(size, begin + long * DOT_SHARE, middleOf(size, token));
}

/** @type {(size: Size, slab: Item, share: number) => number} the radius of a feed-forward's dot */
function radiusOf(size, slab, share) {
  const [, long] = spanOf(size, slab);
  return Math.min(0.8 + 5.5 * share, size.pitch * 0.26, Math.max(long * 0.3, 1.5));
}

/** @type {(curve: Curve, t: number) => [number, number]} */
function along({ from, bend, late, to }, t) {
  const at = (/** @type {0 | 1} */ i) =>
    (1 - t) ** 3 * from[i] +
    3 * (1 - t) ** 2 * t * bend[i] +
    3 * (1 - t) * t ** 2 * late[i] +
    t ** 3 * to[i];
  return [at(0), at(1)];
}

/** @type {(curve: Curve, x: number, y: number) => number} the distance of a point from a curve */
function distanceTo(curve, x, y) {
  const steps = 24;
  let best = Infinity,
    last = curve.from;
  for (let step = 1; step <= steps; step++) {
    const next = along(curve, step / steps);
    best = Math.min(best, distanceToLine(last, next, x, y));
    last = next;
  }
  return best;
}

/** @type {(a: [number, number], b: [number, number], x: number, y: number) => number} */
function distanceToLine([ax, ay], [bx, by], x, y) {
  const [dx, dy] = [bx - ax, by - ay],
    length = dx * dx + dy * dy,
    t = length ? Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1) : 0;
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}

/**
 * The edge at a point: the nearest one within reach, with a bonus for thick curves, or null.
 * @type {(size: Size, slabOf: (layer: number) => Item | undefined, edges: Iterable<Edge>, x: number, y: number) => Edge | null}
 */
function edgeAt(size, slabOf, edges, x, y) {
  let best = NEAR,
    found = null;
  for (const edge of edges) {
    const slab = slabOf(edge.layer);
    if (!slab || edge.query === edge.key) continue;
    const [begin, long] = spanOf(size, slab),
      at = size.phone ? y : x;
    if (at < begin - NEAR || at > begin + long + NEAR) continue;
    const far =
      distanceTo(curveOf(size, slab, edge), x, y) - thicknessOf(size, edge) / 2 - 4 * edge.share;
    if (far < best) [best, found] = [far, edge];
  }
  return found;
}
