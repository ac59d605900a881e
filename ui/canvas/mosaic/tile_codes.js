// @ts-check
// The packed codes of all heads: the index of a cell's code, and its value.

/**
 * Packed by ui/canvas/mosaic/packing.py. `body` contains the deflated codes.
 * @typedef {{
 *   name: string, layers: number, heads: number, labels: string[], title: string, causal: boolean,
 *   valueName: string, levels: number, largest: number[], digest: string,
 *   says: string, about?: About, body: Uint8Array<ArrayBuffer>,
 * }} MosaicData
 */
/** @typedef {[row: number, column: number]} TileCell */

// Heads are numbered layer by layer.
/** @type {(map: MosaicData) => number} */
const headCount = ({ layers, heads }) => layers * heads;
/** @type {(map: MosaicData, head: number) => number} */
const layerOfHead = ({ heads }, head) => Math.floor(head / heads);
/** @type {(map: MosaicData, head: number) => number} */
const headInLayer = ({ heads }, head) => head % heads;
/** @type {(map: MosaicData, head: number) => string} */
const headName = (map, head) => `L${layerOfHead(map, head)}H${headInLayer(map, head)}`;

/** @type {(map: MosaicData, row: number, column: number) => boolean} */
const isTileCellVisible = ({ causal }, row, column) => !causal || column <= row;

/**
 * The index of a visible cell's code. Codes are ordered by head and row. In a causal model, a row ends
 * with the query's own token.
 * @type {(map: MosaicData, head: number, row: number, column: number) => number}
 */
function codeIndex({ causal, labels }, head, row, column) {
  const n = labels.length;
  return causal
    ? (head * n * (n + 1)) / 2 + (row * (row + 1)) / 2 + column
    : head * n * n + row * n + column;
}

// Values are proportional to the square of their code, so small values have finer steps.
/** @type {(map: MosaicData, head: number, code: number) => number} */
const valueOfCode = ({ largest, levels }, head, code) => largest[head] * (code / levels) ** 2;

/**
 * The maximum difference between a code's value and the original value.
 * @type {(map: MosaicData, head: number, code: number) => number}
 */
const errorOfCode = ({ largest, levels }, head, code) =>
  (largest[head] * (code + 0.25)) / levels ** 2;

/** @type {(map: MosaicData, hidden: number[]) => Uint8Array} 1 for each hidden key */
function hiddenKeys({ labels }, hidden) {
  const isHidden = new Uint8Array(labels.length);
  for (const column of hidden) isHidden[column] = 1;
  return isHidden;
}

/**
 * The cell with the largest value in a head. `hidden`: the hidden keys.
 * @type {(map: MosaicData, codes: Uint8Array, hidden: number[], head: number) => TileCell}
 */
function largestCell(map, codes, hidden, head) {
  const isHidden = hiddenKeys(map, hidden),
    nTokens = map.labels.length;
  /** @type {TileCell} */
  let best = [0, 0];
  let most = -1;
  for (let row = 0; row < nTokens; row++) {
    for (let column = 0; column < nTokens; column++) {
      if (!isTileCellVisible(map, row, column) || isHidden[column]) continue;
      const code = codes[codeIndex(map, head, row, column)];
      if (code <= most) continue;
      best = [row, column];
      most = code;
    }
  }
  return best;
}
