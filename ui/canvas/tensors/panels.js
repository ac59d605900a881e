// @ts-check
// Decodes small tensors: their values, labels, identities, and how they were computed.

const WEIGHTS = "weights",
  SCORES = "scores";

// The body contains, panel by panel, its values, identities and operands.
/** @typedef {string[] | string[][]} Labels */
/**
 * How the numbers of a panel were computed; see `Made` in ui/canvas/tensors/__init__.py.
 * @typedef {{
 *   kind: "product" | "rotated" | "scaled" | "masked" | "softmax" | "dropout",
 *   equation: string, sources: string[], sizes: Record<string, number>,
 *   nOperands: number, nTerms: number, operands: Float32Array, added: Float32Array | null,
 * }} Made
 * The selection: its identity if it was only moved, and the cells that it was computed from, as the
 * indices along each axis of a panel.
 * @typedef {{
 *   cell: number, strand: string, read: { identity: string, axes: number[][] }[],
 * }} Lit
 */
/**
 * The position in the window of numbers that were read, and their tensor and block.
 * @typedef {{ what: string, box: DOMRect, hue: string }} ReadBox
 * A tensor as described in ui/canvas/tensors/__init__.py, with fields that are derived here.
 * @typedef {{
 *   name: string, shape: number[], axes: string[], rows: Labels | null, columns: Labels | null,
 *   blocks: Labels | null, mark: number[][], positions: number[][] | null, note: string,
 *   box: [number, number] | null, boxNote: string, shapeText: string,
 *   values: Float32Array, cells: Int32Array | null, groups: Int32Array | null,
 *   strand: string, identity: string, quantity: string, made: Made | null,
 *   grid: [rows: number, columns: number], outer: number[], marked: Set<number>,
 *   there: [rows: number, columns: number], largest: number,
 *   canvas: HTMLCanvasElement, layout: PanelLayout,
 * }} Panel
 * @typedef {{
 *   label: number, head: number, title: number, cellWidth: number, cellHeight: number,
 *   numbered: boolean, blockWidth: number, blockHeight: number, across: number,
 *   stackTitle: number, stackHeight: number, frame: number, blocks: number, stacks: number,
 *   width: number, height: number,
 * }} PanelLayout
 * @typedef {{
 *   panels: Panel[], colour: "value" | "identity", decimals: number, palette: [number, number],
 *   hue: string, link: string, scene: string, speed: number, says: string, about?: About,
 * }} TensorsData
 * @typedef {{ panel: Panel, above: string[], below: string[], x: number, y: number, width: number,
 *   height: number }} PanelPlace
 */

/** @type {(data: Uint8Array) => TensorsData} */
function unpackPanels(data) {
  const { body, ...header } = unpack(data);
  let start = body.byteOffset;
  const take = (/** @type {number} */ count) => {
    start += 4 * count;
    return start - 4 * count;
  };
  for (const panel of header.panels) {
    /** @type {number[]} */
    const shape = panel.shape;
    const count = shape.reduce((a, b) => a * b, 1);
    panel.values = new Float32Array(body.buffer, take(count), count);
    panel.cells = panel.cells ? new Int32Array(body.buffer, take(count), count) : null;
    panel.groups = panel.groups ? new Int32Array(body.buffer, take(count), count) : null;
    if (panel.made) {
      const n = 2 * panel.made.nOperands * count;
      panel.made.operands = new Float32Array(body.buffer, take(n), n);
      panel.made.added = panel.made.added
        ? new Float32Array(body.buffer, take(count), count)
        : null;
    }
    // a vector is drawn as one row
    panel.grid = panel.shape.length === 1 ? [1, panel.shape[0]] : panel.shape.slice(-2);
    panel.outer = panel.shape.slice(0, -2);
    panel.marked = new Set(
      panel.mark.map((/** @type {number[]} */ index) => flat(panel.shape, index)),
    );
    panel.there = panel.there || panel.grid;
    const finite = [...panel.values].filter(Number.isFinite).map(Math.abs);
    panel.largest = Math.max(...finite, 1e-12);
  }
  // all weights in a picture use the same scale, so that they can be compared
  const weighed = header.panels.filter((/** @type {Panel} */ panel) => panel.quantity === WEIGHTS);
  const largest = Math.max(...weighed.map((/** @type {Panel} */ panel) => panel.largest));
  for (const panel of weighed) panel.largest = largest;
  return header;
}

/** @type {(shape: number[], index: number[]) => number} */
const flat = (shape, index) => index.reduce((at, i, axis) => at * shape[axis] + i, 0);

// the first size isn't needed, because the first index is the remainder
/** @type {(shape: number[], at: number) => number[]} */
function unravelIndex(shape, at) {
  const index = [];
  for (const size of shape.slice(1).reverse()) {
    index.unshift(at % size);
    at = Math.floor(at / size);
  }
  return [at, ...index];
}

/** @type {(panel: Panel, at: number) => number[]} the block of a cell, its row and its column */
function placeOf({ grid: [rows, columns] }, at) {
  const row = Math.floor(at / columns);
  return [Math.floor(row / rows), row % rows, at % columns];
}

/** @type {(panel: Panel, at: number, part: [rows: number, columns: number]) => boolean} */
function isInPart(panel, at, [rows, columns]) {
  const [, row, column] = placeOf(panel, at);
  return row < rows && column < columns;
}

// false for a cell that hasn't been computed yet
/** @type {(panel: Panel, at: number) => boolean} */
const isThere = (panel, at) => isInPart(panel, at, panel.there);

/** @type {(panel: Panel, at: number) => boolean} */
const isBoxed = (panel, at) => panel.box !== null && isInPart(panel, at, panel.box);

// the index along one axis; if the panel is a window, the index in the whole tensor
/**
 * @param {Panel} panel
 * @param {number} axis
 * @param {number} i
 */
const real = (panel, axis, i) => (panel.positions ? panel.positions[axis][i] : i);

// the labels for one index of the first axis, if they're nested
/** @type {(labels: Labels | null, first: number) => string[]} */
const labelsOf = (labels, first) =>
  /** @type {string[]} */ (labels && Array.isArray(labels[0]) ? labels[first] : (labels ?? []));

/**
 * @param {number} value
 * @param {number} decimals
 */
function formatNumber(value, decimals) {
  if (Number.isNaN(value)) return "nan";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const long = size >= 10000 || (size > 0 && size < 0.5 * 10 ** -decimals);
  return long ? number(value, 1) : minus(value.toFixed(size >= 100 ? 0 : decimals));
}

// three significant digits are enough to check a sum by hand
/** @param {number} value */
const brief = (value) => number(value, 3);

// the ends of the shortest line between two intervals; if they overlap, the middle of the overlap
/** @type {(a: number, b: number, c: number, d: number) => [number, number]} */
function gap(a, b, c, d) {
  if (b < c) return [b, c];
  if (d < a) return [a, d];
  const middle = (Math.max(a, c) + Math.min(b, d)) / 2;
  return [middle, middle];
}
