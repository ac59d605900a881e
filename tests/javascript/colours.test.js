import assert from "node:assert/strict";
import test from "node:test";
import { shared } from "./shared_scripts.js";

const {
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

test("a scale starts and ends with its own colors, and clamps values outside its range", () => {
  assert.equal(colour(0), "rgb(68 1 84)");
  assert.equal(colour(1), "rgb(253 231 37)");
  assert.equal(colour(-1), colour(0));
  assert.equal(colour(7), colour(1));
  assert.equal(diverging(0), "rgb(246 246 246)");
  assert.equal(diverging(-1), "rgb(0 50 100)");
  assert.equal(diverging(1), "rgb(120 44 0)");
  // in the dark theme, zero is dark and both ends are bright
  const light = (/** @type {number} */ share) => bright(rgb(diverging(share, true)));
  assert.deepEqual([-1, 0, 1].map(light), [true, false, true]);
});

test("brightness increases along the scale", () => {
  const steps = Array.from({ length: 65 }, (_, i) => luminance(colour(i / 64)));
  for (let i = 1; i < steps.length; i++) assert.ok(steps[i] > steps[i - 1]);
});

test("head colors contrast with both backgrounds of the site", () => {
  assert.equal(new Set(HEAD_COLOURS).size, 12);
  for (const head of HEAD_COLOURS) {
    assert.ok(contrast(head, "#ffffff") >= 3, `${head} on white`);
    assert.ok(contrast(head, "#0b0e12") >= 3, `${head} on dark`);
  }
});

test("a number in a cell is readable on every color", () => {
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

// Linear light as seen with protanopia (no red cones) and deuteranopia (no green cones);
// Machado, Oliveira and Fernandes 2009, severity 1.
const EYES = {
  all: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  "without red": [
    0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998,
  ],
  "without green": [
    0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881,
  ],
};

const times = (matrix, [a, b, c]) =>
  [0, 3, 6].map((row) => matrix[row] * a + matrix[row + 1] * b + matrix[row + 2] * c);

// The Oklab coordinates of a color as seen by these eyes; equal distances look about equally
// different (Ottosson 2020).
function seen(text, eyes) {
  const linear = rgb(text).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const light = times(EYES[eyes], linear).map((part) => Math.min(Math.max(part, 0), 1));
  const cones = times(
    [
      0.4122214708, 0.5363325363, 0.0514459929, 0.2119034982, 0.6806995451, 0.1073969566,
      0.0883024619, 0.2817188376, 0.6299787005,
    ],
    light,
  ).map(Math.cbrt);
  return times(
    [
      0.2104542553, 0.793617785, -0.0040720468, 1.9779984951, -2.428592205, 0.4505937099,
      0.0259040371, 0.7827717662, -0.808675766,
    ],
    cones,
  );
}

test("colors that are drawn next to each other also differ for color-blind people", () => {
  for (const names of [
    ["queries", "keys", "values"],
    ["stream", "attention", "feed-forward"],
    ["positions", "stream"],
  ]) {
    for (const eyes of Object.keys(EYES)) {
      const places = names.map((name) => seen(QUANTITIES[name], eyes));
      places.forEach((one, i) => {
        for (const other of places.slice(i + 1)) {
          const apart = Math.hypot(...one.map((value, axis) => value - other[axis]));
          // two or three times the just noticeable difference of adjacent areas (0.02 to 0.03)
          assert.ok(apart >= 0.07, `${names} to eyes ${eyes}: ${apart}`);
        }
      });
    }
  }
});

test("colors are parsed in every notation we use", () => {
  assert.deepEqual(rgb("#0b0e12"), [11, 14, 18]);
  assert.deepEqual(rgb("rgb(1, 2, 3)"), [1, 2, 3]);
  assert.deepEqual(rgb("rgba(1, 2, 3, 0.5)"), [1, 2, 3]);
  assert.deepEqual(rgb("nonsense"), [128, 128, 128]);
  assert.equal(bright(rgb("#ffffff")), true);
  assert.equal(bright(rgb("#0b0e12")), false);
});
