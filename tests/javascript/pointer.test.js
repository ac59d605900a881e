import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const PARTS = ["layout", "flow", "curves", "pointer"].map((part) => `one_pass/${part}.js`);
const { moveByArrowKey, STEPS } = script(PARTS, "moveByArrowKey", "STEPS");
const [TOKENS, HEADS, HEAD_SIZE] = [5, 3, 4];

/** The effect of a key at a location. `opened` has a square weight and a long query matrix. */
function press(key, place, more = {}) {
  const shapes = { weights: [TOKENS, TOKENS], q: [TOKENS, HEAD_SIZE] };
  const opened = {
    numbers: Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, { shape }])),
  };
  const map = { labels: Array.from({ length: TOKENS }, String), heads: HEADS };
  const first = { layer: 1, head: 1, matrix: "weights", row: 2, column: 2, token: 2 };
  const scene = { map, opened, edges: [], pointed: null, place: { ...first, ...place } };
  return moveByArrowKey({ ...scene, ...more }, key);
}

const edge = (layer, query, key) => ({ layer, query, key, share: 0.1, heads: [] });

test("up and down select the next word in the whole picture, and stay within the text", () => {
  const at = (key, token) => press(key, { level: "whole", token }).place.token;
  assert.equal(at("ArrowDown", 2), 3);
  assert.equal(at("ArrowUp", 2), 1);
  assert.equal(at("ArrowUp", 0), 0);
  assert.equal(at("ArrowDown", TOKENS - 1), TOKENS - 1);
});

test("left and right step through the selected word's curves in layer order", () => {
  const own = [edge(0, 2, 1), edge(1, 2, 0), edge(1, 2, 1)],
    edges = [own[2], edge(0, 3, 1), own[0], edge(0, 2, 2), own[1]];
  const next = (key, pointed) =>
    press(key, { level: "whole" }, { edges, pointed: pointed && { kind: "edge", edge: pointed } })
      .pointed.edge;
  assert.equal(next("ArrowRight", null), own[0]);
  assert.equal(next("ArrowRight", own[0]), own[1]);
  assert.equal(next("ArrowRight", own[1]), own[2]);
  assert.equal(next("ArrowRight", own[2]), own[2]);
  assert.equal(next("ArrowLeft", null), own[2]);
  assert.equal(next("ArrowLeft", own[2]), own[1]);
  assert.equal(next("ArrowLeft", own[0]), own[0]);
  assert.deepEqual(press("ArrowRight", { level: "whole" }, { edges: [edge(0, 3, 1)] }), {});
});

test("in a matrix, arrow keys move between cells and stay within it", () => {
  const at = (key, place) => press(key, { level: "matrix", ...place }).place;
  assert.deepEqual(at("ArrowUp", {}), { row: 1, column: 2 });
  assert.deepEqual(at("ArrowRight", {}), { row: 2, column: 3 });
  assert.deepEqual(at("ArrowDown", { row: TOKENS - 1 }), { row: TOKENS - 1, column: 2 });
  const last = { matrix: "q", column: HEAD_SIZE - 1 };
  assert.deepEqual(at("ArrowRight", last), { row: 2, column: HEAD_SIZE - 1 });
});

test("in a head, arrow keys move between matrices in the order of computation", () => {
  const at = (key, matrix) => press(key, { level: "head", matrix }).place.matrix;
  const names = STEPS.map(({ tensor }) => tensor);
  for (let step = 1; step < names.length; step++) {
    assert.equal(at("ArrowRight", names[step - 1]), names[step]);
    assert.equal(at("ArrowLeft", names[step]), names[step - 1]);
  }
  assert.equal(at("ArrowDown", names[0]), names[5]);
  assert.equal(at("ArrowRight", names.at(-1)), names.at(-1));
});
