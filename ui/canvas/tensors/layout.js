// @ts-check
// The layout of a tensor's blocks and cells, in CSS pixels, for drawing and for hit testing.

const CELL_HEIGHT = 22,
  SMALL_CELL = 9,
  LABEL_HEIGHT = 13,
  FEW_ROWS = 4,
  MAX_LABEL = 84,
  TITLE = 16,
  BLOCK_GAP = 10,
  FRAME = 5;
const NUMBER_SPACE = 1000; // blocks up to this width show their numbers, and scroll if needed

/**
 * @param {Panel} panel
 * @param {Pen} context
 * @param {number} room
 * @param {number} decimals
 */
function panelLayout(panel, context, room, decimals) {
  context.font = LABEL;
  const [rows, columns] = panel.grid;
  /** @param {string[]} texts */
  const width = (texts) => Math.max(0, ...texts.map((text) => context.measureText(text).width));
  const label = panel.rows ? Math.ceil(Math.min(width(panel.rows.flat()), MAX_LABEL)) + 6 : 0;
  const head = panel.columns ? TITLE : 0;
  const numbers = Math.ceil(width([...panel.values].map((v) => formatNumber(v, decimals)))) + 8;
  const labelled = panel.columns ? Math.min(Math.ceil(width(panel.columns.flat())) + 6, 56) : 0;
  const wanted = Math.max(numbers, labelled, CELL_HEIGHT);
  const blocks = panel.outer.at(-1) ?? 1,
    isStacked = panel.outer.length > 1, // a tensor of 4 dimensions
    stacks = isStacked ? panel.outer[0] : 1;
  const title = panel.outer.length ? TITLE : 0;
  const asBlock = (/** @type {number} */ cell) => label + columns * cell;
  // show numbers unless the block would be too wide; otherwise cells are small squares
  const numbered = asBlock(wanted) + 2 * FRAME <= Math.max(room, NUMBER_SPACE);
  const cellWidth = numbered
    ? wanted
    : Math.max(SMALL_CELL, Math.min(CELL_HEIGHT, (room - label - 2 * FRAME - 1) / columns));
  // if there are only a few rows, make them tall enough for all labels
  const tall = panel.rows && rows <= FEW_ROWS ? LABEL_HEIGHT : 0;
  const cellHeight = numbered ? CELL_HEIGHT : Math.min(CELL_HEIGHT, Math.max(cellWidth, tall));
  const blockWidth = asBlock(cellWidth),
    blockHeight = title + head + rows * cellHeight;
  const across = Math.max(
    1,
    Math.min(blocks, Math.floor((room - 2 * FRAME + BLOCK_GAP) / (blockWidth + BLOCK_GAP))),
  );
  const lines = Math.ceil(blocks / across);
  const stackTitle = isStacked ? TITLE : 0;
  const stackHeight = stackTitle + lines * (blockHeight + BLOCK_GAP) - BLOCK_GAP + 2 * FRAME;
  const frame = isStacked ? FRAME : 0;
  return {
    label,
    head,
    title,
    cellWidth,
    cellHeight,
    numbered,
    blockWidth,
    blockHeight,
    across,
    stackTitle,
    stackHeight,
    frame,
    blocks,
    stacks,
    width: across * (blockWidth + BLOCK_GAP) - BLOCK_GAP + 2 * frame + 1,
    height: stacks * (stackHeight + BLOCK_GAP) - BLOCK_GAP + 1,
  };
}

/**
 * @param {Panel} panel
 * @param {number} block
 */
function blockCorner(panel, block) {
  const l = panel.layout;
  const stack = Math.floor(block / l.blocks),
    place = block % l.blocks;
  return {
    x: l.frame + (place % l.across) * (l.blockWidth + BLOCK_GAP),
    y:
      stack * (l.stackHeight + BLOCK_GAP) +
      l.stackTitle +
      l.frame +
      Math.floor(place / l.across) * (l.blockHeight + BLOCK_GAP),
  };
}

/** @type {(panel: Panel, block: number) => Grid} the cells of a block */
function blockGrid(panel, block) {
  const l = panel.layout,
    [rows, columns] = panel.grid,
    { x, y } = blockCorner(panel, block);
  return {
    left: x + l.label,
    top: y + l.title + l.head,
    width: l.cellWidth,
    height: l.cellHeight,
    rows,
    columns,
  };
}

/** @type {(panel: Panel, at: number) => Box} */
function cellBox(panel, at) {
  const [block, row, column] = placeOf(panel, at);
  return boxOf(blockGrid(panel, block), row, column);
}

/** @type {(panel: Panel, x: number, y: number) => number} the index of the cell at a point, or -1 */
function cellUnder(panel, x, y) {
  const { blocks, stacks } = panel.layout,
    [rows, columns] = panel.grid;
  for (let block = 0; block < blocks * stacks; block++) {
    const cell = cellAt(blockGrid(panel, block), x, y);
    if (!cell) continue;
    const found = (block * rows + cell[0]) * columns + cell[1];
    return isThere(panel, found) ? found : -1;
  }
  return -1;
}
