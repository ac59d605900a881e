import assert from "node:assert/strict";
import test from "node:test";
import { shared } from "./shared_scripts.js";

const { csvOf, fileName } = shared("csvOf", "fileName");

test("a file name is plain, short and never hidden", () => {
  assert.equal(fileName("Three heads: a <b>/..", "svg"), "Three-heads-a-b.svg");
  assert.equal(fileName("../.../", "png"), "picture.png");
  assert.equal(fileName("שלום é", "png"), "שלום-é.png");
  assert.equal(fileName("x".repeat(500), "svg"), `${"x".repeat(80)}.svg`);
});

test("numbers in a CSV file are exact, whatever their magnitude", () => {
  const values = new Float32Array([0.1, -2.5, 3e-39, 1e30]);
  const [head, ...lines] = csvOf([["a"], ...[...values].map((value) => [value])]).split("\r\n");
  assert.equal(head, "a");
  assert.equal(lines.pop(), "", "the last line ends too");
  assert.deepEqual(new Float32Array(lines), values);
  // only the digits that float32 has; a more precise number keeps all of its digits
  assert.deepEqual(lines, ["0.1", "-2.5", "3e-39", "1e+30"]);
  assert.equal(csvOf([[0.1 + 0.2, 3, NaN]]), "0.30000000000000004,3,NaN\r\n");
});

test("a text with a comma, a quote or a newline stays one field", () => {
  assert.equal(
    csvOf([["a,b", 'say "no"', "two\nlines", "plain", "שלום"]]),
    '"a,b","say ""no""","two\nlines",plain,שלום\r\n',
  );
});

test("no text becomes a spreadsheet formula", () => {
  for (const text of ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", '=HYPERLINK("http://x")', "\r=1"]) {
    const field = csvOf([[text]]).replace(/\r\n$/, "");
    const read = field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field;
    assert.equal(read, `'${text}`);
  }
  assert.equal(csvOf([[-1.5, "a=1"]]), "-1.5,a=1\r\n"); // a number may be negative
});
