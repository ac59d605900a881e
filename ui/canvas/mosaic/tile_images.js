// @ts-check
// The image of each head, with one pixel per cell in the color of its code.

/**
 * The data and its arrangement. `codes` is empty until they're inflated.
 * @typedef {{ map: MosaicData, codes: Uint8Array, arrangement: Arrangement }} MosaicView
 */
/** @typedef {[left: number, top: number]} ImageCorner */

/**
 * The color of each code of a head as image bytes; values below the threshold are transparent.
 * @type {(view: MosaicView, head: number) => Uint8ClampedArray}
 */
function tilePalette({ map, arrangement }, head) {
  const table = new Uint8ClampedArray(4 * (map.levels + 1));
  const scale = arrangement.scale ?? map.largest[head];
  for (let code = 0; code <= map.levels; code++) {
    const value = valueOfCode(map, head, code);
    const share = scale > 0 ? Math.min(value / scale, 1) : 0;
    const rgb = colourNumbers(arrangement.square_root ? Math.sqrt(share) : share);
    table.set([...rgb, share < arrangement.threshold ? 0 : 255], 4 * code);
  }
  return table;
}

/**
 * Draw the images of these heads on one hidden canvas, each at most `most` pixels wide and high. One
 * large canvas is much faster than a small one per head.
 * @type {(view: MosaicView, heads: number[], sheet: HTMLCanvasElement, most: number) =>
 *   { side: number, corners: Map<number, ImageCorner> }}
 */
function drawTileImages(view, heads, sheet, most) {
  const side = Math.min(view.map.labels.length, most);
  const across = Math.max(1, Math.ceil(Math.sqrt(heads.length))),
    down = Math.ceil(heads.length / across);
  const image = new ImageData(Math.max(across * side, 1), Math.max(down * side, 1));
  /** @type {Map<number, ImageCorner>} */
  const corners = new Map();
  heads.forEach((head, i) => {
    /** @type {ImageCorner} */
    const corner = [(i % across) * side, Math.floor(i / across) * side];
    corners.set(head, corner);
    fillTileImage(view, head, image, corner, side);
  });
  sheet.width = image.width;
  sheet.height = image.height;
  pen(sheet).putImageData(image, 0, 0);
  return { side, corners };
}

/**
 * The first cell of each pixel along rows or columns; the last entry is the end.
 * @type {(nTokens: number, side: number) => number[]}
 */
const firstCells = (nTokens, side) =>
  Array.from(
    { length: side + 1 },
    (_, pixel) => cellInTile(nTokens, side, pixel, pixel)?.[0] ?? nTokens,
  );

/**
 * Fill the image of a head. If it has fewer pixels than cells, each pixel shows its largest cell.
 * @type {(view: MosaicView, head: number, image: ImageData, corner: ImageCorner, side: number) =>
 *   void}
 */
function fillTileImage(view, head, image, [left, top], side) {
  const { map, codes, arrangement } = view,
    nTokens = map.labels.length;
  const table = tilePalette(view, head),
    isHidden = hiddenKeys(map, arrangement.hidden),
    first = firstCells(nTokens, side);
  const largest = new Int16Array(side);
  for (let y = 0; y < side; y++) {
    largest.fill(-1);
    for (let row = first[y]; row < first[y + 1]; row++) {
      const start = codeIndex(map, head, row, 0),
        visible = map.causal ? row + 1 : nTokens;
      for (let x = 0; x < side; x++) {
        const end = Math.min(first[x + 1], visible);
        for (let column = first[x]; column < end; column++) {
          if (!isHidden[column]) largest[x] = Math.max(largest[x], codes[start + column]);
        }
      }
    }
    const begin = 4 * ((top + y) * image.width + left);
    for (let x = 0; x < side; x++) {
      if (largest[x] < 0) continue; // masked or hidden: transparent
      for (let i = 0; i < 4; i++) image.data[begin + 4 * x + i] = table[4 * largest[x] + i];
    }
  }
}
