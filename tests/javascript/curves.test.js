import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { curveOf, along, edgeAt, middleOf, NEAR } = script(
  ["one_pass/layout.js", "one_pass/curves.js"],
  ...["curveOf", "along", "edgeAt", "middleOf", "NEAR"],
);
const TOKENS = 6,
  LAYERS = 3;
const DESK = { width: 900, height: 300, phone: false, pitch: 40, first: 42, along: 700 };
const PHONE = { width: 390, height: 700, phone: true, pitch: 60, first: 26, along: 500 };

/** Positions of consecutive layers, to the right or downward. */
const slabsOf = (size) => (layer) => {
  if (layer < 0 || layer >= LAYERS) return undefined;
  const [begin, long, wide] = [80 + 150 * layer, 150, size.pitch * TOKENS];
  return size.phone
    ? { x: size.first, y: begin, w: wide, h: long }
    : { x: begin, y: size.first, w: long, h: wide };
};

const edge = (layer, query, key, share = 0.1) => ({ layer, query, key, share, heads: [] });

/** Edges between all words, layer by layer. */
const EDGES = [...Array(LAYERS).keys()].flatMap((layer) =>
  [...Array(TOKENS).keys()].flatMap((query) =>
    [...Array(query).keys()].map((key) => edge(layer, query, key)),
  ),
);

for (const [name, size] of [
  ["on a desk", DESK],
  ["on a phone", PHONE],
]) {
  const slab = slabsOf(size);

  test(`a curve runs from its key to its query, ${name}`, () => {
    for (const each of EDGES) {
      const curve = curveOf(size, slab(each.layer), each),
        across = size.phone ? 0 : 1;
      assert.equal(curve.from[across], middleOf(size, each.key));
      assert.equal(curve.to[across], middleOf(size, each.query));
      assert.deepEqual(along(curve, 0), curve.from);
      assert.deepEqual(along(curve, 1), curve.to);
    }
  });

  test(`every point on a drawn curve hits its edge, ${name}`, () => {
    for (const each of EDGES)
      for (const t of [0, 0.1, 0.35, 0.5, 0.8, 1]) {
        const [x, y] = along(curveOf(size, slab(each.layer), each), t);
        assert.equal(edgeAt(size, slab, [each], x, y), each);
      }
  });

  test(`between separate curves the nearest one is hit, ${name}`, () => {
    // the last word's curves start in the middle of other words' rows, away from other curves
    for (const key of [0, 2, 4]) {
      const fan = [0, 2, 4].map((from) => edge(1, 5, from)),
        own = fan.find((each) => each.key === key);
      const [x, y] = along(curveOf(size, slab(1), own), 0.1);
      assert.equal(edgeAt(size, slab, fan, x, y), own);
    }
  });
}

test("of two overlapping curves the thick one is hit, whatever their order", () => {
  const slab = slabsOf(DESK),
    thin = edge(1, 5, 2, 0.02),
    thick = edge(1, 5, 2, 0.4);
  const [x, y] = along(curveOf(DESK, slab(1), thin), 0.5);
  assert.equal(edgeAt(DESK, slab, [thin, thick], x, y), thick);
  assert.equal(edgeAt(DESK, slab, [thick, thin], x, y), thick);
});

test("nothing is hit far from curves, in a missing layer, or on a word's own line", () => {
  const slab = slabsOf(DESK),
    each = edge(1, 4, 1),
    curve = curveOf(DESK, slab(1), each);
  const [x, y] = along(curve, 0);
  assert.equal(edgeAt(DESK, slab, [], x, y), null);
  assert.equal(edgeAt(DESK, slab, [each], x, y - 2 * NEAR), null);
  assert.equal(edgeAt(DESK, slab, [each], slab(2).x + 2 * NEAR, curve.to[1]), null);
  assert.equal(edgeAt(DESK, slab, [edge(LAYERS, 4, 1)], x, y), null);
  assert.equal(edgeAt(DESK, slab, [edge(1, 1, 1)], x, y), null);
});
