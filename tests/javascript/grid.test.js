import assert from "node:assert/strict";
import test from "node:test";
import { shared } from "./shared_scripts.js";

const { boxOf, cellAt } = shared("boxOf", "cellAt");

const grid = { left: 31.5, top: 12.25, width: 7.3, height: 20, rows: 3, columns: 5 };

test("every point in a cell's box maps to that cell", () => {
  for (let row = 0; row < grid.rows; row++) {
    for (let column = 0; column < grid.columns; column++) {
      const { x, y, width, height } = boxOf(grid, row, column);
      for (const part of [0.01, 0.5, 0.99]) {
        assert.deepEqual(cellAt(grid, x + part * width, y + part * height), [row, column]);
      }
    }
  }
});
