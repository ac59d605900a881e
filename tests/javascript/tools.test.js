import assert from "node:assert/strict";
import test from "node:test";
import { shared } from "./shared_scripts.js";

const { tableOf, MAX_ROWS } = shared("tableOf", "MAX_ROWS");

/** The text of each cell, row by row. */
const texts = (part) => part.children.map((row) => row.children.map((cell) => cell.textContent));

test("a table has headings, literal texts, and numbers formatted like the readout", () => {
  const hostile = "<b>=1</b>";
  const [head, body] = tableOf([
    ["query", hostile],
    [hostile, -0.25],
  ]).children;
  assert.deepEqual(texts(head), [["query", hostile]]);
  assert.deepEqual(texts(body), [[hostile, "−0.25"]]);
  assert.equal(head.children[0].children[0].name, "th");
});

test("a truncated table says where to find all rows", () => {
  const rows = (count) => [["n"], ...Array.from({ length: count }, (_, i) => [`row ${i}`])];
  const [, most] = tableOf(rows(MAX_ROWS)).children;
  assert.equal(most.children.length, MAX_ROWS);
  const [, body] = tableOf(rows(MAX_ROWS + 5)).children;
  assert.equal(body.children.length, MAX_ROWS + 1);
  assert.match(texts(body).at(-1)[0], new RegExp(`${MAX_ROWS + 5} rows`));
});
