// @ts-check
// Where the flow lies: the one place that says so, for painting it and for finding what is pointed at.

const CURVE_SHARE = 0.7, // of a layer: a curve arrives there, and behind it the feed-forward's dot
  DOT_SHARE = 0.86,
  NEAR = 7; // CSS pixels: so near a curve, it is the curve that is pointed at

/** @type {(size: Size, slab: Item) => [number, number]} where a layer begins, and how long it is */
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

/** @type {(size: Size, edge: Edge) => number} how thick a curve is: it says how much it matters */
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

/** @type {(curve: Curve, x: number, y: number) => number} how far a point is from a curve */
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
 * The edge that is pointed at: of those near enough the nearest, where a thick one counts as nearer;
 * null where there is none.
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
