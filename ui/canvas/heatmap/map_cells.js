// @ts-check
// Paints the cells of a map. Masked cells are hatched, and cells without a value are crossed out.

/**
 * A grid whose edges are on whole device pixels, so that no cell is blurred.
 * @typedef {{ x: number[], y: number[] }} Edges the start of each column and row, and the end of the last
 */

/** @type {(grid: Grid, ratio: number) => Edges} */
function wholePixels(grid, ratio) {
  const rounded = (/** @type {number} */ place) => Math.round(place * ratio) / ratio;
  return {
    x: Array.from({ length: grid.columns + 1 }, (_, i) => rounded(boxOf(grid, 0, i).x)),
    y: Array.from({ length: grid.rows + 1 }, (_, i) => rounded(boxOf(grid, i, 0).y)),
  };
}

/**
 * @param {Pen} context
 * @param {HeatmapData} map
 * @param {MapLayout} layout
 * @param {string} ink
 * @param {number} ratio device pixels per CSS pixel
 */
function paintCells(context, map, layout, ink, ratio) {
  const { grid } = layout,
    edges = wholePixels(grid, ratio),
    tone = colourScale(map, ink);
  const gap = grid.width >= 8 ? 1 : 0;
  /** @type {Cell[]} */
  const absent = [];
  // thousands of small cells are painted as one image, except in an SVG file
  const image = gap || context instanceof SvgContext ? null : new CellImage(edges, ratio, tone);
  for (let row = 0; row < map.rows; row++) {
    for (let column = 0; column < map.columns; column++) {
      if (!unmasked(map, row, column)) continue;
      const value = valueAt(map, row, column);
      if (Number.isNaN(value)) absent.push([row, column]);
      else if (image) image.fill(row, column, shareOf(map, value));
      else {
        const x = edges.x[column],
          y = edges.y[row];
        context.fillStyle = tone(shareOf(map, value));
        context.fillRect(x, y, edges.x[column + 1] - x - gap, edges.y[row + 1] - y - gap);
      }
    }
  }
  if (image) image.putOn(context);
  context.strokeStyle = ink;
  context.lineWidth = 1;
  context.globalAlpha = 0.18;
  context.beginPath();
  if (map.causal) hatch(context, layout);
  for (const [row, column] of absent) crossOut(context, boxOf(grid, row, column), gap);
  context.stroke();
  context.globalAlpha = 1;
}

/** @type {(context: Pen, box: Box, gap: number) => void} */
function crossOut(context, { x, y, width, height }, gap) {
  const right = x + width - gap,
    bottom = y + height - gap;
  context.moveTo(x, y);
  context.lineTo(right, bottom);
  context.moveTo(right, y);
  context.lineTo(x, bottom);
}

/**
 * Slanted lines over the masked triangle, each from its lower edge to the top or right edge of the map.
 * @type {(context: Pen, layout: MapLayout) => void}
 */
function hatch(context, { grid, right, bottom }) {
  const { left, top, width: cell, rows, columns } = grid;
  for (let sum = left + top; sum < right + bottom; sum += 7) {
    // the line x + y = sum
    /** @type {number | null} */
    let from = null;
    for (let row = rows - 1; row >= 0 && from === null; row--) {
      const { x: first, y: above } = boxOf(grid, row, Math.max(row + columns - rows + 1, 0));
      const x = Math.max(sum - above - cell, first);
      if (x <= Math.min(sum - above, right)) from = x;
    }
    const end = Math.min(sum - top, right);
    if (from === null || end <= from) continue;
    context.moveTo(from, sum - from);
    context.lineTo(end, sum - end);
  }
}

// Cells without gaps as pixels, with 1024 colors, which is more than a screen can distinguish.
class CellImage {
  /**
   * @param {Edges} edges
   * @param {number} ratio
   * @param {(share: number) => string} colourOf
   */
  constructor(edges, ratio, colourOf) {
    this.ratio = ratio;
    this.colourOf = colourOf;
    this.corner = [edges.x[0], edges.y[0]];
    const pixels = (/** @type {number[]} */ places) =>
      places.map((place) => Math.round((place - places[0]) * ratio));
    this.x = pixels(edges.x);
    this.y = pixels(edges.y);
    this.image = new ImageData(this.x[this.x.length - 1] || 1, this.y[this.y.length - 1] || 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
    /** @type {number[]} */
    this.tones = [];
  }

  /** @param {number} share */
  tone(share) {
    const step = Math.round(Math.min(Math.max(share, 0), 1) * 1023);
    if (this.tones[step] === undefined) {
      const [r, g, b] = rgb(this.colourOf(step / 1023));
      this.tones[step] = new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0];
    }
    return this.tones[step];
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {number} share
   */
  fill(row, column, share) {
    const tone = this.tone(share),
      { width } = this.image;
    for (let y = this.y[row]; y < this.y[row + 1]; y++) {
      this.pixels.fill(tone, y * width + this.x[column], y * width + this.x[column + 1]);
    }
  }

  /** @param {Pen} context */
  putOn(context) {
    const drawn = document.createElement("canvas"),
      { width, height } = this.image;
    [drawn.width, drawn.height] = [width, height];
    pen(drawn).putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false; // image pixels match canvas pixels
    const [x, y] = this.corner;
    context.drawImage(drawn, x, y, width / this.ratio, height / this.ratio);
  }
}
