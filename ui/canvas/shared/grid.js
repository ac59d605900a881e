// @ts-check
// Positions of the cells of a table, in CSS pixels. Drawing and hit testing both use this, so the
// readout always shows the cell under the pointer.

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/**
 * A grid of cells of the same size.
 * @typedef {{
 *   left: number, top: number, width: number, height: number, rows: number, columns: number,
 * }} Grid the corner of the first cell, the size of a cell, and the number of rows and columns
 */

/** @type {(grid: Grid, row: number, column: number) => Box} */
function boxOf({ left, top, width, height }, row, column) {
  return { x: left + column * width, y: top + row * height, width, height };
}

/** @type {(grid: Grid, x: number, y: number) => [row: number, column: number] | null} */
function cellAt({ left, top, width, height, rows, columns }, x, y) {
  const row = Math.floor((y - top) / height),
    column = Math.floor((x - left) / width);
  return row < 0 || column < 0 || row >= rows || column >= columns ? null : [row, column];
}
