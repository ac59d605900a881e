import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { sharesOf, summed, NAMED } = script("one_pass/why.js", "sharesOf", "summed", "NAMED");
const [WORDS, LAYERS, HEADS, TOKENS, SPLIT] = [3, 4, 5, 6, 2];

/** Distinct numbers of both signs, the same in every run. */
const numbers = (count, shift) =>
  Float32Array.from({ length: count }, (_, at) => 3 * Math.sin(12.9898 * (at + shift) + 1));

/** A pass whose strongest heads are split by key. */
function passOf() {
  const heads = numbers(WORDS * LAYERS * HEADS, 0),
    keys = numbers(WORDS * SPLIT * TOKENS, 200);
  const top = [...Array(WORDS).keys()].flatMap((choice) => {
    const own = heads.subarray(choice * LAYERS * HEADS, (choice + 1) * LAYERS * HEADS);
    const order = [...own.keys()].sort((a, b) => Math.abs(own[b]) - Math.abs(own[a]));
    return order.slice(0, SPLIT);
  });
  return {
    labels: Array.from({ length: TOKENS }, String),
    heads: HEADS,
    numbers: {
      why_heads: { shape: [WORDS, LAYERS, HEADS], values: heads },
      why_mlp: { shape: [WORDS, LAYERS], values: numbers(WORDS * LAYERS, 100) },
      why_rest: { shape: [WORDS, 4], values: numbers(WORDS * 4, 150) },
      why_top: { shape: [WORDS, SPLIT], values: Float32Array.from(top) },
      why_keys: { shape: [WORDS, SPLIT, TOKENS], values: keys },
    },
  };
}

/** The sum of all parts of a word's logit. */
function logit(map, choice) {
  let sum = 0;
  for (const name of ["why_heads", "why_mlp", "why_rest"]) {
    const { values } = map.numbers[name],
      size = values.length / WORDS;
    for (let at = choice * size; at < (choice + 1) * size; at++) sum += values[at];
  }
  return sum;
}

const total = (parts) => parts.reduce((sum, { share }) => sum + share, 0);
// about ten shares of up to 3 are stored in float32
const near = (actual, expected) =>
  assert.ok(Math.abs(actual - expected) < 1e-4, `${actual}, and not ${expected}`);

test("all parts add up to the logit, and so do the displayed ones", () => {
  const map = passOf();
  for (let choice = 0; choice < WORDS; choice++) {
    const parts = sharesOf(map, choice, -1);
    assert.equal(parts.length, LAYERS * HEADS + LAYERS + 4);
    near(total(parts), logit(map, choice));
    near(total(summed(parts)), logit(map, choice));
  }
});

test("compared with another word, the parts add up to the logit difference", () => {
  const map = passOf();
  for (const [choice, other] of [
    [0, 2],
    [2, 1],
  ]) {
    const parts = sharesOf(map, choice, other);
    near(total(parts), logit(map, choice) - logit(map, other));
    near(total(summed(parts)), total(parts));
    const [own, less] = [sharesOf(map, choice, -1), sharesOf(map, other, -1)];
    parts.forEach(({ name, share }, at) => {
      assert.equal(name, own[at].name);
      near(share, own[at].share - less[at].share);
    });
  }
});

test("the largest heads are listed, largest first, and link to the key they read most", () => {
  const map = passOf(),
    shown = summed(sharesOf(map, 1, -1)),
    named = shown.filter(({ head }) => head !== undefined);
  const own = [...map.numbers.why_heads.values.subarray(LAYERS * HEADS, 2 * LAYERS * HEADS)];
  const order = [...own.keys()].sort((a, b) => Math.abs(own[b]) - Math.abs(own[a]));
  assert.deepEqual(
    named.map(({ name, share }) => [name, share]),
    order.slice(0, NAMED.heads).map((at) => [`L${Math.floor(at / HEADS)}H${at % HEADS}`, own[at]]),
  );
  named.slice(0, SPLIT).forEach(({ key, share }, rank) => {
    const from = (SPLIT + rank) * TOKENS,
      parts = [...map.numbers.why_keys.values.subarray(from, from + TOKENS)];
    // for a negative share it's the most negative key
    assert.equal(parts[key], share < 0 ? Math.min(...parts) : Math.max(...parts));
  });
  assert.ok(named.slice(SPLIT).every(({ key }) => key === undefined));
});
