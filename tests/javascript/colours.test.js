import assert from "node:assert/strict";
import test from "node:test";
import { shared } from "./shared_scripts.js";

const {
  OKABE_ITO,
  HEAD_COLOURS,
  QUANTITIES,
  rgb,
  bright,
  colour,
  colourNumbers,
  diverging,
  divergingNumbers,
  readable,
  identityColour,
} = shared(
  "OKABE_ITO",
  "HEAD_COLOURS",
  "QUANTITIES",
  "rgb",
  "bright",
  "colour",
  "colourNumbers",
  "diverging",
  "divergingNumbers",
  "readable",
  "identityColour",
);

function luminance(text) {
  const [r, g, b] = rgb(text).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test("a scale begins and ends in its own colours, and stays there outside", () => {
  assert.equal(colour(0), "rgb(68 1 84)");
  assert.equal(colour(1), "rgb(253 231 37)");
  assert.equal(colour(-1), colour(0));
  assert.equal(colour(7), colour(1));
  assert.equal(diverging(0), "rgb(246 246 246)");
  assert.equal(diverging(-1), "rgb(0 50 100)");
  assert.equal(diverging(1), "rgb(120 44 0)");
  // on the dark theme zero is dark, and both ends are bright
  const light = (/** @type {number} */ share) => bright(rgb(diverging(share, true)));
  assert.deepEqual([-1, 0, 1].map(light), [true, false, true]);
});

test("brightness grows along the scale", () => {
  const steps = Array.from({ length: 65 }, (_, i) => luminance(colour(i / 64)));
  for (let i = 1; i < steps.length; i++) assert.ok(steps[i] > steps[i - 1]);
});

test("the colours of heads stand out from both backgrounds of the site", () => {
  assert.equal(new Set(HEAD_COLOURS).size, 12);
  for (const head of HEAD_COLOURS) {
    assert.ok(contrast(head, "#ffffff") >= 3, `${head} on white`);
    assert.ok(contrast(head, "#0b0e12") >= 3, `${head} on dark`);
  }
});

test("numbers below and above zero have the same colours as text and as bytes", () => {
  for (const dark of [false, true]) {
    for (const share of [-1, -0.3, 0, 0.6, 1]) {
      assert.equal(diverging(share, dark), `rgb(${divergingNumbers(share, dark).join(" ")})`);
    }
  }
});

test("what is written in a cell can be read on every colour", () => {
  const shares = Array.from({ length: 65 }, (_, i) => i / 64);
  const cells = shares.flatMap((share) => [
    colourNumbers(share),
    divergingNumbers(2 * share - 1, false),
    divergingNumbers(2 * share - 1, true),
    ...[0, 1, 2].map((row) => identityColour(row, 3, share)),
  ]);
  for (const cell of cells) {
    assert.ok(contrast(readable(cell), `rgb(${cell.join(" ")})`) >= 4.5, cell.join(" "));
  }
});

test("queries, keys and values stand out from both backgrounds, and from each other", () => {
  assert.deepEqual(Object.keys(QUANTITIES), ["queries", "keys", "values"]);
  assert.equal(new Set(Object.values(QUANTITIES)).size, 3);
  for (const hue of Object.values(QUANTITIES)) {
    for (const paper of ["#ffffff", "#0b0e12"]) assert.ok(contrast(hue, paper) >= 3, hue);
  }
});

test("identities have colours of their own, few of them those of Okabe and Ito", () => {
  assert.deepEqual(identityColour(0, 7, 0.3), rgb(OKABE_ITO.blue));
  for (const rows of [3, 7, 12]) {
    const all = Array.from({ length: rows * 4 }, (_, i) =>
      identityColour(i % rows, rows, Math.floor(i / rows) / 3).join(),
    );
    assert.equal(new Set(all).size, all.length);
  }
});

test("colours are read as they are written", () => {
  assert.deepEqual(rgb("#0b0e12"), [11, 14, 18]);
  assert.deepEqual(rgb("rgb(1, 2, 3)"), [1, 2, 3]);
  assert.deepEqual(rgb("rgba(1, 2, 3, 0.5)"), [1, 2, 3]);
  assert.deepEqual(rgb("nonsense"), [128, 128, 128]);
  assert.equal(bright(rgb("#ffffff")), true);
  assert.equal(bright(rgb("#0b0e12")), false);
});
