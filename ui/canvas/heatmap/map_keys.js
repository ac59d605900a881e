// @ts-check
// Moving between cells by keyboard.

/** @type {Record<string, [down: number, right: number]>} */
const CELL_MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-Infinity, 0],
  PageDown: [Infinity, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/** @type {(map: HeatmapData, from: Cells, move: [number, number]) => Cells} */
function cellBeside(map, from, [down, right]) {
  /** @type {(place: number, size: number) => number} */
  const clamp = (place, size) => Math.min(Math.max(place, 0), size - 1);
  return oneCell(clamp(from.rows[0] + down, map.rows), clamp(from.columns[0] + right, map.columns));
}

/** @type {(units: number[], unit: number) => number[]} the positions of a unit along an axis */
function placesOf(units, unit) {
  return unit < 0 ? [] : units.flatMap((other, place) => (other === unit ? [place] : []));
}
