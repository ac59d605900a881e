import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { cellsRead } = script(["tensors/panels.js", "tensors/reads.js"], "cellsRead");

/** The indices read along each axis of each input. */
const read = (equation, sizes, index) => {
  const sources = equation.split(",").map((_, nth) => `input ${nth}`);
  return cellsRead({ equation, sources, sizes }, index).map(({ axes }) => axes);
};

test("output letters are indexed, and the others are summed over", () => {
  const sizes = { t: 6, c: 3, d: 4 };
  assert.deepEqual(read("tc,cd->td", sizes, [5, 2]), [
    [[5], [0, 1, 2]],
    [[0, 1, 2], [2]],
  ]);
});

test("three query heads share a key head", () => {
  const sizes = { b: 2, h: 2, g: 3, q: 5, k: 5, d: 2 };
  assert.deepEqual(read("b(hg)qd,bhkd->b(hg)qk", sizes, [1, 5, 1, 2]), [
    [[1], [5], [1], [0, 1]],
    [[1], [1], [2], [0, 1]],
  ]);
});

test("column 5 of head 7, with 11 columns per head", () => {
  const [, matrix] = read("tc,(hd)c->htd", { h: 8, d: 11, t: 4, c: 2 }, [7, 3, 5]);
  assert.deepEqual(matrix, [[82], [0, 1]]);
});

test("two summed axes share an axis of the matrix", () => {
  const [context, matrix] = read("htd,c(hd)->tc", { h: 2, t: 4, d: 2, c: 5 }, [3, 4]);
  assert.deepEqual(context, [[0, 1], [3], [0, 1]]);
  assert.deepEqual(matrix, [[4], [0, 1, 2, 3]]);
});

test("a rotated number also reads the number half a head away", () => {
  const sizes = { t: 5, p: 2, r: 2, d: 4 };
  for (const column of [1, 5]) {
    assert.deepEqual(read("t(pd)->t(rd)", sizes, [3, column]), [[[3], [1, 5]]]);
  }
});

test("a softmax reads its own score and those of its row", () => {
  assert.deepEqual(read("qk,ql->qk", { q: 2, k: 3, l: 3 }, [1, 2]), [
    [[1], [2]],
    [[1], [0, 1, 2]],
  ]);
});

test("a row of a longer tensor keeps its index if only that row is stored", () => {
  const [query] = read("qd,kd->qk", { q: 1, k: 8, d: 2 }, [7, 0]);
  assert.deepEqual(query, [[7], [0, 1]]);
});
