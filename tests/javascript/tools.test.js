import assert from "node:assert/strict";
import test from "node:test";
import { shared } from "./shared_scripts.js";

const { tableOf, MAX_ROWS } = shared("tableOf", "MAX_ROWS");

/** The texts of a table, row by row. */
const texts = (part) => part.children.map((row) => row.children.map((cell) => cell.textContent));

test("a table has its heads, its texts as they are, and its numbers as they are read", () => {
  const hostile = "<b>=1</b>";
  const [head, body] = tableOf([
    ["query", hostile],
    [hostile, -0.25],
  ]).children;
  assert.deepEqual(texts(head), [["query", hostile]]);
  assert.deepEqual(texts(body), [[hostile, "−0.25"]]);
  assert.equal(head.children[0].children[0].name, "th");
});

test("a table of more rows than a page can bear says where all of them are", () => {
  const rows = (count) => [["n"], ...Array.from({ length: count }, (_, i) => [`row ${i}`])];
  const [, most] = tableOf(rows(MAX_ROWS)).children;
  assert.equal(most.children.length, MAX_ROWS);
  const [, body] = tableOf(rows(MAX_ROWS + 5)).children;
  assert.equal(body.children.length, MAX_ROWS + 1);
  assert.match(texts(body).at(-1)[0], new RegExp(`${MAX_ROWS + 5} rows`));
});
