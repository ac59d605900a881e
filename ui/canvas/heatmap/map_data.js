// @ts-check
// The data of a map: its values, which of them are masked, and their colors.

/** @typedef {[row: number, column: number]} Cell */
/** @typedef {{ rows: number[], columns: number[] }} Cells adjacent cells with a common frame */
/**
 * Packed by ui/canvas/heatmap/__init__.py.
 * @typedef {{
 *   rows: number, columns: number, labels: string[], rowLabels: string[], title: string,
 *   causal: boolean, lowest: number, largest: number, squareRoot: boolean, diverging: boolean,
 *   valueName: string, hiddenText: string, mayHide: boolean, link: string | null,
 *   rowUnits: number[], columnUnits: number[], merges: boolean, chosen: Cell | null,
 *   picks: boolean, captions: string[], axes: [[string, string], [string, string]],
 *   numbered: boolean, rowHeight: number | null, framedRows: number[], roomFor: string[],
 *   says: string, about?: About, values: Float32Array,
 * }} HeatmapData
 */

/** @type {(row: number, column: number) => Cells} */
const oneCell = (row, column) => ({ rows: [row], columns: [column] });

/** @type {(map: HeatmapData, row: number, column: number) => number} */
const valueAt = (map, row, column) => map.values[row * map.columns + column];

/** @type {(map: HeatmapData, row: number, column: number) => boolean} */
const unmasked = (map, row, column) => !map.causal || column <= row + map.columns - map.rows;

/** @type {(map: HeatmapData, cells: Cells) => number[] | null} null if all of them are masked */
function valuesOf(map, { rows, columns }) {
  const seen = rows.flatMap((row) =>
    columns
      .filter((column) => unmasked(map, row, column))
      .map((column) => valueAt(map, row, column)),
  );
  return seen.length ? seen.filter((value) => !Number.isNaN(value)) : null;
}

/** @type {(map: HeatmapData, cells: Cells) => number | ""} the value of a cell, or of a merged block */
function exactValue(map, cells) {
  const values = valuesOf(map, cells) ?? [],
    single = cells.rows.length * cells.columns.length === 1;
  if (!values.length || !(single || map.merges)) return "";
  return single ? values[0] : values.reduce((a, b) => a + b, 0) / cells.rows.length;
}

/** @type {(map: HeatmapData, value: number) => number} the position on the color scale, from 0 to 1 */
const shareOf = (map, value) =>
  (map.squareRoot
    ? Math.sqrt(value / map.largest)
    : (value - map.lowest) / (map.largest - map.lowest)) || 0;

/**
 * The color of a position on the scale; the middle of a diverging scale is 0.
 * @type {(map: HeatmapData, ink: string) => (share: number) => string}
 */
const colourScale = (map, ink) => (share) =>
  map.diverging ? diverging(2 * share - 1, bright(rgb(ink))) : colour(share);

/** @type {(map: HeatmapData) => { low: string, middle: string, high: string, kind: string }} */
function scaleTexts(map) {
  const middle = map.squareRoot ? map.largest / 4 : (map.lowest + map.largest) / 2;
  return {
    low: number(map.lowest, 3),
    middle: number(middle, 3),
    high: (map.diverging ? "+" : "") + number(map.largest, 3),
    kind: map.squareRoot ? "square-root scale" : "",
  };
}
