// @ts-check
// The attention weights of all heads, one byte each, and small images of matrices. Each image is painted
// once, with one pixel per cell, and then only scaled.

/**
 * `weight`: a weight decoded from its byte. `image`: a small image of some numbers, cached by name.
 * `forget`: delete the images of the open head.
 * @typedef {{
 *   weight: (layer: number, head: number, row: number, column: number) => number,
 *   image: (name: string, numbers: Numbers, tone: (value: number) => number[]) => HTMLCanvasElement,
 *   forget: () => void,
 * }} Images
 */

/** @type {(map: PassData, codes: () => Uint8Array, dark: () => boolean) => Images} */
function imagesOf(map, codes, dark) {
  const tokens = map.labels.length,
    perHead = map.causal ? (tokens * (tokens + 1)) / 2 : tokens * tokens;
  /** @type {Map<string, HTMLCanvasElement>} */
  const images = new Map();

  /** @type {Images["weight"]} */
  function weight(layer, head, row, column) {
    const at = layer * map.heads + head;
    const cell = map.causal ? (row * (row + 1)) / 2 + column : row * tokens + column;
    return map.largest[at] * (codes()[at * perHead + cell] / map.levels) ** 2;
  }

  /** @type {Images["image"]} */
  function image(name, numbers, tone) {
    const key = `${name} ${dark()}`,
      kept = images.get(key);
    if (kept) return kept;
    const tile = name.match(/^tile (\d+) (\d+)$/);
    const [rows, columns] = numbers.shape;
    const picture = document.createElement("canvas");
    picture.width = columns;
    picture.height = rows;
    const pixels = new ImageData(columns, rows);
    for (let at = 0; at < rows * columns; at++) {
      const row = Math.floor(at / columns),
        column = at % columns;
      if ((tile || name === "step weights") && map.causal && column > row) continue;
      const value = tile ? weight(+tile[1], +tile[2], row, column) : numbers.values[at];
      if (value === -Infinity) continue;
      const shown = tile ? Math.sqrt(value / map.largest[+tile[1] * map.heads + +tile[2]]) : value;
      pixels.data.set([...tone(shown), 255].slice(0, 4), 4 * at);
    }
    pen(picture).putImageData(pixels, 0, 0);
    images.set(key, picture);
    return picture;
  }

  function forget() {
    for (const name of images.keys()) if (name.startsWith("step ")) images.delete(name);
  }

  return { weight, image, forget };
}
