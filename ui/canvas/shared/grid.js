// @ts-check
// Where the cells of a table lie, in CSS pixels. Drawing and reading both ask here, so the cell
// that is read is the cell drawn under the pointer.

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/**
 * Cells of one size beside and below each other.
 * @typedef {{
 *   left: number, top: number, width: number, height: number, rows: number, columns: number,
 * }} Grid the corner of the first cell, the size of each, and how many there are
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
