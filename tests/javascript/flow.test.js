import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { edgesOf, routeOf, firstDetail, strongestInto, MIN_SHARES, FEW } = script(
  "one_pass/flow.js",
  "edgesOf",
  "routeOf",
  "firstDetail",
  "strongestInto",
  "MIN_SHARES",
  "FEW",
);
const LAYERS = 4,
  TOKENS = 5;

/** Seeded random numbers from 0 to 1 (mulberry32). */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A pass with these edges. Each row: layer, query, key, share, then heads and their shares. */
function passOf(rows, residual = new Float32Array(LAYERS * TOKENS), first = {}) {
  const numbers = {
    flow_edges: { shape: [rows.length, rows[0].length], values: Float32Array.from(rows.flat()) },
    flow_residual: { shape: [LAYERS, TOKENS], values: residual },
  };
  return { numbers, first, layers: LAYERS, labels: Array.from({ length: TOKENS }, String) };
}

/** A causal pass with random shares. */
function randomPass(seed) {
  const next = random(seed),
    rows = [];
  for (let layer = 0; layer < LAYERS; layer++)
    for (let query = 0; query < TOKENS; query++)
      for (let key = 0; key <= query; key++) rows.push([layer, query, key, next() / 2, 0, 1]);
  return passOf(rows, Float32Array.from({ length: LAYERS * TOKENS }, next));
}

/** The share of a token's final vector that passes a token before a layer, over all paths. */
function through(map, least, layer, token, final) {
  if (layer === LAYERS) return token === final ? 1 : 0;
  const kept = map.numbers.flow_residual.values[layer * TOKENS + token];
  let sum = kept >= least ? kept * through(map, least, layer + 1, token, final) : 0;
  for (const { layer: own, query, key, share } of edgesOf(map))
    if (own === layer && key === token && share >= least)
      sum += share * through(map, least, layer + 1, query, final);
  return sum;
}

// shares are stored in float32
const near = (actual, expected, what) =>
  assert.ok(Math.abs(actual - expected) < 1e-5, `${what}: ${actual}, and not ${expected}`);

test("edges are unpacked with the heads that carry something, weakest first", () => {
  const rows = [
    [2, 4, 1, 0.5, 7, 0.75, 0, 0.25],
    [0, 3, 3, 0.125, 5, 1, 0, 0], // one head; the rest of the row is padding
  ];
  assert.deepEqual(edgesOf(passOf(rows)), [
    { layer: 0, query: 3, key: 3, share: 0.125, heads: [[5, 1]] },
    {
      ...{ layer: 2, query: 4, key: 1, share: 0.5 },
      heads: [
        [7, 0.75],
        [0, 0.25],
      ],
    },
  ]);
});

test("a route matches a sum over all paths at every node", () => {
  for (const seed of [1, 2, 3]) {
    const map = randomPass(seed),
      edges = edgesOf(map);
    for (const [final, least] of [
      [TOKENS - 1, 0.05],
      [2, 0.2],
      [1, 0.4],
    ]) {
      const { nodes, kept, carried } = routeOf(map, edges, final, least);
      for (let layer = 0; layer <= LAYERS; layer++)
        for (let token = 0; token < TOKENS; token++) {
          const place = `seed ${seed}, token ${final}, node ${layer} ${token}`;
          near(nodes[layer * TOKENS + token], through(map, least, layer, token, final), place);
          if (layer === LAYERS) continue;
          const residual = map.numbers.flow_residual.values[layer * TOKENS + token],
            on = residual >= least ? nodes[(layer + 1) * TOKENS + token] * residual : 0;
          near(kept[layer * TOKENS + token], on, `${place}, residual line`);
        }
      const leading = edges.filter(
        ({ layer, query, share }) =>
          share >= least && through(map, least, layer + 1, query, final) > 0,
      );
      assert.deepEqual(new Set(leading), carried);
    }
  }
});

test("the words that a word reads most from, each with its strongest edge", () => {
  const rows = [
    [0, 4, 1, 0.3, 0, 1],
    [1, 4, 1, 0.6, 0, 1], // stronger edge from the same word
    [2, 4, 1, 0.1, 0, 1],
    [1, 4, 2, 0.4, 0, 1],
    [3, 4, 0, 0.2, 0, 1],
    [1, 4, 4, 0.9, 0, 1], // self-edge
    [1, 3, 2, 0.8, 0, 1], // edge into another word
  ];
  const strongest = strongestInto(edgesOf(passOf(rows)), 4, 2);
  assert.deepEqual(
    strongest.map(({ layer, key }) => [layer, key]),
    [
      [1, 1],
      [1, 2],
    ],
  );
  assert.equal(strongestInto(edgesOf(passOf(rows)), 4, 9).length, 3);
  assert.deepEqual(strongestInto(edgesOf(passOf(rows)), 2, 3), []);
});

test("initial detail is higher if few edges lead to the word or the title's curve is thin", () => {
  const strong = MIN_SHARES[0],
    thin = MIN_SHARES[5],
    first = { token: 4, layer: 0, column: 3 };
  const detail = (rows) => {
    const map = passOf(rows, undefined, first);
    return firstDetail(map, edgesOf(map));
  };
  const many = Array.from({ length: FEW }, (_, key) => [1, 4, key, strong, 0, 1]);
  const usual = detail(many);
  assert.ok(MIN_SHARES[usual] > thin);
  const named = detail([...many, [0, 4, 3, thin, 0, 1]]);
  assert.ok(MIN_SHARES[named] <= thin && named > usual);
  const few = detail(many.map(([layer, query, key]) => [layer, query, key, thin, 0, 1]));
  assert.ok(MIN_SHARES[few] <= thin);
  assert.equal(detail([[1, 2, 0, strong, 0, 1]]), MIN_SHARES.length - 1, "no edge leads there");
});
