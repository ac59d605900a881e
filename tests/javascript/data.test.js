import assert from "node:assert/strict";
import test from "node:test";
import { LETTER, shared } from "./shared_scripts.js";

const { number, percent, unpackFloats, shorten } = shared(
  "number",
  "percent",

  "unpackFloats",
  "shorten",
);
const measure = { measureText: (text) => ({ width: LETTER * [...text].length }) };

/** Packs data like ui/canvas/component.py. */
function packed(header, values) {
  let text = JSON.stringify(header);
  while (Buffer.byteLength(text) % 4) text += " ";
  const length = Buffer.alloc(4);
  length.writeUInt32LE(Buffer.byteLength(text));
  return Buffer.concat([length, Buffer.from(text), Buffer.from(new Float32Array(values).buffer)]);
}

test("a share is a percentage with two significant digits", () => {
  const shares = [0, 7.6e-6, 0.00001, 0.0036, 0.05, 0.644, 0.996, 1, 1.0000001];
  const texts = [
    "0%",
    "less than 0.001%",
    "0.001%",
    "0.36%",
    "5%",
    "64%",
    "more than 99%",
    "100%",
    "100%",
  ];
  assert.deepEqual(shares.map(percent), texts);
});

test("numbers are exact at any offset in a larger buffer", () => {
  const values = [0.1, -2.5, Number.NaN, Number.NEGATIVE_INFINITY, 3e-39];
  const bytes = packed({ title: "é שלום 😀 </script>", rows: 5 }, values);
  for (let offset = 0; offset < 5; offset++) {
    const larger = new Uint8Array(bytes.length + offset);
    larger.set(bytes, offset);
    const read = unpackFloats(larger.subarray(offset));
    assert.deepEqual(read.values, new Float32Array(values));
    assert.equal(read.title, "é שלום 😀 </script>");
    assert.equal(read.rows, 5);
    assert.equal("body" in read, false);
  }
});

test("a label is cut between whole characters to fit its space", () => {
  assert.equal(shorten(measure, "abcdef", 6 * LETTER), "abcdef");
  assert.equal(shorten(measure, "abcdef", 6 * LETTER - 1), "abcd…");
  assert.equal(shorten(measure, "abcdefgh₁₂", 7 * LETTER), "abcd…₁₂");
  assert.equal(shorten(measure, "abcdefgh (b)", 5 * LETTER), "abcd…");
  assert.equal(shorten(measure, "😀😀😀😀", 3 * LETTER), "😀😀…");
  assert.equal(shorten(measure, "abc", 0), "a…"); // never nothing
});

test("a number has a real minus sign, and is a decimal unless it has many zeros", () => {
  const cases = [
    [-0.001, 1, "−0.001"],
    [-0.00123456, 3, "−0.00123"],
    [0.00049999, 3, "0.0005"],
    [0, 3, "0"],
    [-0, 3, "0"],
    [9.9999, 3, "10"],
    [1234567, 3, "1230000"],
    [-2.5, 6, "−2.5"],
    [-3.21e-8, 2, "−3.2 × 10⁻⁸"],
    [4e12, 3, "4 × 10¹²"],
    [Number.NaN, 3, "nan"],
    [Number.NEGATIVE_INFINITY, 3, "−∞"],
  ];
  for (const [value, digits, text] of cases) assert.equal(number(value, digits), text);
});
