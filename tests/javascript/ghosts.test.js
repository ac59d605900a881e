import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { sameTokens, lengthsOf, ghostOf } = script(
  "one_pass/ghosts.js",
  "sameTokens",
  "lengthsOf",
  "ghostOf",
);

/** A pass of two states whose lengths tell the state and the token. */
const pass = (...labels) => ({
  labels,
  off: [],
  play: null,
  numbers: {
    state_norms: { values: Float32Array.from(Array(2 * labels.length).keys(), (at) => at + 1) },
  },
});

test("of one word for another each token stays in its place", () => {
  const [now, before] = [pass("a", "cat", "sat"), pass("a", "dog", "sat")];
  assert.deepEqual(sameTokens(now, before), [0, 1, 2]);
  assert.deepEqual([...lengthsOf(now, before)], [1, 2, 3, 4, 5, 6]);
});

test("a word of more tokens is new, and what stands around it is not", () => {
  const [now, before] = [pass("a", "wal", "rus", "sat"), pass("a", "cat", "sat")];
  assert.deepEqual(sameTokens(now, before), [0, -1, -1, 2]);
  assert.deepEqual([...lengthsOf(now, before)], [1, NaN, NaN, 3, 4, NaN, NaN, 6]);
  assert.deepEqual(sameTokens(before, now), [0, -1, 3]);
});

test("a label's count does not make it another token", () => {
  const [now, before] = [pass("the", "x", "the₂"), pass("x", "the")];
  assert.deepEqual(sameTokens(now, before), [-1, 0, 1]);
});

test("what a pass is held against", () => {
  const [one, other] = [pass("a"), pass("b")],
    switched = { ...pass("b"), off: ["F3"] },
    played = { ...pass("b"), play: { prompt: 1, passes: [] } };
  const drawn = (map, ghost = null) => ({ map, ghost, place: null, items: new Map() });
  assert.equal(ghostOf(null, one), null);
  assert.equal(ghostOf(drawn(one), other), one);
  assert.equal(ghostOf(drawn(other, one), other), one); // drawn again
  assert.equal(ghostOf(drawn(other, one), switched), other);
  assert.equal(ghostOf(drawn(switched, other), switched), other);
  assert.equal(ghostOf(drawn(switched, other), other), null);
  assert.equal(ghostOf(drawn(one), played), null);
  assert.equal(ghostOf(drawn(played), one), null);
});
