// @ts-check
// The positions of the heads' tiles, in CSS pixels: in the grid of layers, or in a list of heads.

const LAYER_NUMBER = 26, // width of the layer numbers, left of each block of layers
  HEAD_NUMBER = 18, // height of the head numbers, above it
  CAPTION_HEIGHT = 15,
  TILE_GAP = 3,
  LAYER_BLOCK_GAP = 22;
const MIN_TILE = 14,
  MIN_CAPTIONED = 68, // narrower tiles have no space for a caption
  MAX_TILE = 132,
  LARGE_TILE = 190, // large enough to point at a cell
  MIN_MOSAIC_HEIGHT = 200,
  MAX_MOSAIC_HEIGHT = 860;

/**
 * Which values are drawn, and how; see ui/canvas/mosaic/__init__.py.
 * @typedef {{
 *   selected: number, order: number[] | null, captions: string[], scale: number | null,
 *   square_root: boolean, threshold: number, hidden: number[], large: boolean,
 * }} Arrangement
 */
/**
 * tiles: the box of each head, in the order of the arrow keys. columns: the number of tiles that the up
 * and down keys move by. layersPerBlock: null if the tiles have captions instead of layer and head
 * numbers.
 * @typedef {{
 *   tiles: Map<number, Box>, columns: number, layersPerBlock: number | null,
 *   size: number, width: number, height: number,
 * }} TileLayout
 */

/**
 * The layout, and the height of the frame around it. The height is the same for every order, so that
 * nothing below jumps; taller layouts scroll.
 * @type {(map: MosaicData, arrangement: Arrangement, width: number) =>
 *   { layout: TileLayout, frameHeight: number }}
 */
function mosaicLayout(map, { order, large }, width) {
  const byLayer = tilesByLayer(map, width, large);
  return {
    layout: order ? tilesInOrder(order, width, byLayer.height, large) : byLayer,
    frameHeight: Math.max(Math.min(MAX_MOSAIC_HEIGHT, byLayer.height), MIN_MOSAIC_HEIGHT),
  };
}

// Choose the number of adjacent blocks of layers that gives the largest tiles.
/** @type {(map: MosaicData, width: number) => { rows: number, tile: number }} */
function largestTiles({ layers, heads }, width) {
  let best = { rows: layers, tile: -Infinity };
  for (let blocks = 1; blocks <= layers; blocks++) {
    const rows = Math.ceil(layers / blocks);
    const across =
      (width - blocks * LAYER_NUMBER - (blocks - 1) * LAYER_BLOCK_GAP) / (blocks * heads);
    const down = (MAX_MOSAIC_HEIGHT - HEAD_NUMBER) / rows;
    const tile = Math.floor(Math.min(across, down, MAX_TILE));
    if (tile > best.tile) best = { rows, tile };
    if (across < MIN_TILE) break;
  }
  return best;
}

/** @type {(map: MosaicData, width: number, large: boolean) => TileLayout} */
function tilesByLayer(map, width, large) {
  const { rows, tile: largest } = largestTiles(map, width);
  const tile = large ? LARGE_TILE : Math.max(largest, MIN_TILE),
    size = tile - TILE_GAP;
  const blockWidth = LAYER_NUMBER + map.heads * tile + LAYER_BLOCK_GAP;
  /** @type {TileLayout["tiles"]} */
  const tiles = new Map();
  for (let head = 0; head < headCount(map); head++) {
    const layer = layerOfHead(map, head),
      left = Math.floor(layer / rows) * blockWidth + LAYER_NUMBER;
    /** @type {Grid} */
    const block = {
      left,
      top: HEAD_NUMBER,
      width: tile,
      height: tile,
      rows,
      columns: map.heads,
    };
    tiles.set(head, tileBox(block, layer % rows, headInLayer(map, head), size));
  }
  return {
    tiles,
    columns: map.heads,
    layersPerBlock: rows,
    size,
    width: Math.ceil(map.layers / rows) * blockWidth - LAYER_BLOCK_GAP,
    height: HEAD_NUMBER + rows * tile,
  };
}

/**
 * The given heads in order, each with its caption, in a layout of height `most` or less if possible.
 * @type {(order: number[], width: number, most: number, large: boolean) => TileLayout}
 */
function tilesInOrder(order, width, most, large) {
  const count = Math.max(order.length, 1);
  const gridOf = (/** @type {number} */ size) => {
    const columns = Math.max(1, Math.floor(width / (size + TILE_GAP)));
    return {
      left: 0,
      top: 0,
      width: size + TILE_GAP,
      height: size + CAPTION_HEIGHT + TILE_GAP,
      rows: Math.ceil(count / columns),
      columns,
    };
  };
  const heightOf = (/** @type {Grid} */ { rows, height }) => rows * height;
  let size = large ? LARGE_TILE : MAX_TILE;
  while (!large && size > MIN_CAPTIONED && heightOf(gridOf(size)) > most) size--;
  const grid = gridOf(size),
    { columns } = grid;
  return {
    tiles: new Map(
      order.map((head, i) => [head, tileBox(grid, Math.floor(i / columns), i % columns, size)]),
    ),
    columns,
    layersPerBlock: null,
    size,
    width: Math.min(count, columns) * grid.width,
    height: heightOf(grid),
  };
}

// The box of a tile without its gap and caption.
/** @type {(grid: Grid, row: number, column: number, size: number) => Box} */
const tileBox = (grid, row, column, size) => ({
  ...boxOf(grid, row, column),
  width: size,
  height: size,
});

/**
 * The cell at a point of a tile, relative to its corner; null outside. Both drawing and hit testing use
 * this. Lengths are multiplied by the number of tokens, so that pixels stay integers and rounding
 * can't move a pixel into the next cell.
 * @type {(nTokens: number, size: number, x: number, y: number) => TileCell | null}
 */
const cellInTile = (nTokens, size, x, y) =>
  cellAt(
    { left: 0, top: 0, width: size, height: size, rows: nTokens, columns: nTokens },
    x * nTokens,
    y * nTokens,
  );

/** @type {(layout: TileLayout, nTokens: number, x: number, y: number) =>
 *   { head: number, cell: TileCell } | null} */
function tileCellAt({ tiles, size }, nTokens, x, y) {
  for (const [head, tile] of tiles) {
    const cell = cellInTile(nTokens, size, x - tile.x, y - tile.y);
    if (cell) return { head, cell };
  }
  return null;
}
