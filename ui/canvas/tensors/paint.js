// @ts-check
// Paints a tensor: the colors of its cells, their numbers, labels and frames.

/**
 * What the painters need in addition to a panel. `lit`: the selection, here or in a linked picture.
 * `focus`: the selected cell, if it's in this picture.
 * @typedef {{
 *   picture: TensorsData, root: HTMLElement, lit: Lit | null,
 *   focus: { panel: Panel, at: number } | null,
 * }} TensorView
 */

/** @typedef {[tone: string, width: number]} Stroke */

const LIT = /** @type {Stroke[]} */ ([
  ["black", 4],
  ["white", 2],
]); // the frame of a highlighted cell, visible on every color

// scores and weights are new numbers, so they're colored by value
/** @type {(view: TensorView, panel: Panel) => boolean} */
const byIdentity = ({ picture }, panel) =>
  picture.colour === "identity" && panel.quantity !== WEIGHTS && panel.quantity !== SCORES;
/** @param {TensorView} view */
const onDark = ({ root }) => bright(rgb(getComputedStyle(root).color));

/** @type {(ink: string) => Rgb} the background for this text color */
const paperFor = (ink) => (bright(rgb(ink)) ? [16, 20, 26] : [255, 255, 255]);

/** @type {(view: TensorView, panel: Panel, at: number, paper: Rgb) => Rgb} */
function panelTone(view, panel, at, paper) {
  if (byIdentity(view, panel)) {
    const [rows, width] = view.picture.palette;
    const cell = panel.cells?.[at] ?? -1,
      known = cell >= 0;
    const id = known ? cell : (panel.groups?.[at] ?? -1);
    if (id < 0) return mix(paper, [128, 128, 128], 0.25);
    const row = Math.floor(id / width),
      place = known && width > 1 ? (id % width) / (width - 1) : 0.5;
    return identityColour(row, rows, place);
  }
  const value = panel.values[at];
  if (!Number.isFinite(value)) return mix(paper, [128, 128, 128], 0.3);
  const share = value / panel.largest;
  return panel.quantity === WEIGHTS
    ? colourNumbers(share)
    : divergingNumbers(share, bright(paper) === false);
}

/** @type {(view: TensorView, panel: Panel, at: number) => boolean} */
function cellIsLit({ lit, focus }, panel, at) {
  if (!lit || !isThere(panel, at)) return false;
  if (focus?.panel === panel && focus.at === at) return true;
  if (panel.cells && lit.cell >= 0 && panel.strand === lit.strand) {
    return panel.cells[at] === lit.cell;
  }
  return cellIsRead(lit, panel, at);
}

/**
 * Whether the selected number was computed from this cell.
 * @type {(lit: Lit, panel: Panel, at: number) => boolean}
 */
function cellIsRead(lit, panel, at) {
  if (!isThere(panel, at)) return false;
  const index = unravelIndex(panel.shape, at);
  return lit.read.some(
    ({ identity, axes }) =>
      identity === panel.identity &&
      axes.every((read, axis) => read.includes(real(panel, axis, index[axis]))),
  );
}

/** @type {(view: TensorView, panel: Panel, context: Pen) => void} */
function paintPanel(view, panel, context) {
  const l = panel.layout,
    ink = getComputedStyle(panel.canvas).color;
  const paper = paperFor(ink);
  context.textBaseline = "middle";
  const blocks = l.blocks * l.stacks;
  for (let block = 0; block < blocks; block++) panelLabels(panel, context, ink, block);
  for (let at = 0; at < panel.values.length; at++) {
    if (!isThere(panel, at)) continue;
    const { x, y } = cellBox(panel, at);
    const tone = panelTone(view, panel, at, paper);
    context.fillStyle = css(tone);
    context.fillRect(x, y, l.cellWidth - 1, l.cellHeight - 1);
    if (l.numbered) {
      context.font = LABEL;
      context.textAlign = "right";
      context.fillStyle = readable(tone);
      context.fillText(
        formatNumber(panel.values[at], view.picture.decimals),
        x + l.cellWidth - 5,
        y + l.cellHeight / 2,
      );
    }
  }
  for (let at = 0; at < panel.values.length; at++) {
    if (!isThere(panel, at)) continue;
    const box = { ...cellBox(panel, at), width: l.cellWidth - 1, height: l.cellHeight - 1 };
    if (panel.marked.has(at)) strokeBox(context, box, [[ink, 2]]);
    if (cellIsLit(view, panel, at)) strokeBox(context, box, LIT);
  }
  if (panel.box && Math.min(...panel.box) > 0) outlineBox(context, panel, panel.box, ink, paper);
}

// a thick frame and hatching for the boxed part, so that it's visible without colors
/**
 * @param {Pen} context
 * @param {Panel} panel
 * @param {[rows: number, columns: number]} boxed
 * @param {string} ink
 * @param {Rgb} paper
 */
function outlineBox(context, panel, [rows, columns], ink, paper) {
  const { x, y } = cellBox(panel, 0),
    l = panel.layout;
  const width = columns * l.cellWidth - 1,
    height = rows * l.cellHeight - 1;
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = ink;
  context.globalAlpha = 0.18;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = -height; at < width; at += 7) {
    context.moveTo(x + at, y + height);
    context.lineTo(x + at + height, y);
  }
  context.stroke();
  context.restore();
  const strokes = /** @type {Stroke[]} */ ([
    [css(paper), 6],
    [ink, 3],
  ]);
  strokeBox(context, { x, y, width, height }, strokes);
}

/** @type {(context: Pen, box: Box, strokes: Stroke[]) => void} */
function strokeBox(context, { x, y, width, height }, strokes) {
  for (const [tone, thick] of strokes) {
    context.strokeStyle = tone;
    context.lineWidth = thick;
    context.strokeRect(x, y, width, height);
  }
}

/**
 * @param {Panel} panel
 * @param {Pen} context
 * @param {string} ink
 * @param {number} block
 */
function panelLabels(panel, context, ink, block) {
  const l = panel.layout,
    { x, y } = blockCorner(panel, block);
  context.fillStyle = ink;
  context.font = LABEL;
  context.textAlign = "left";
  const names = panel.axes,
    place = block % l.blocks;
  const inner = panel.outer.length - 1,
    first = inner > 0 ? Math.floor(block / l.blocks) : block;
  const rowTexts = labelsOf(panel.rows, first),
    columnTexts = labelsOf(panel.columns, first);
  if (l.title) {
    const own = panel.blocks ? ` ${labelsOf(panel.blocks, first)[place]}` : "";
    const title = `${names[inner]} ${real(panel, inner, place)}${own}`;
    context.fillText(shorten(context, title, l.blockWidth), x, y + TITLE / 2);
  }
  if (l.stackTitle && place === 0) {
    const stack = block / l.blocks,
      top = stack * (l.stackHeight + BLOCK_GAP);
    context.fillText(`${names[0]} ${real(panel, 0, stack)}`, 0, top + TITLE / 2);
    context.strokeStyle = ink;
    context.globalAlpha = 0.5;
    context.strokeRect(
      0.5,
      top + l.stackTitle + 0.5,
      l.width - 1,
      l.stackHeight - l.stackTitle - 1,
    );
    context.globalAlpha = 1;
  }
  if (panel.rows) {
    context.textAlign = "right";
    const every = Math.ceil(LABEL_HEIGHT / l.cellHeight);
    for (let row = 0; row < panel.there[0]; row += every) {
      const text = shorten(context, rowTexts[row], l.label - 6);
      context.fillText(text, x + l.label - 5, y + l.title + l.head + (row + 0.5) * l.cellHeight);
    }
  }
  if (panel.columns) {
    context.textAlign = "center";
    const every = Math.ceil(16 / l.cellWidth);
    for (let column = 0; column < panel.there[1]; column += every) {
      const text = fitText(context, columnTexts[column], every * l.cellWidth - 2);
      // leave space for the box's thick edge above the first row
      const middle = y + l.title + TITLE / 2 - (panel.box ? 2 : 0);
      context.fillText(text, x + l.label + (column + 0.5) * l.cellWidth, middle);
    }
  }
}

// like `shorten`, but drops the mark for a leading space first if there isn't enough space
/**
 * @param {Pen} context
 * @param {string} text
 * @param {number} room
 */
function fitText(context, text, room) {
  const fits = context.measureText(text).width <= room;
  return shorten(context, fits || text.length < 2 ? text : text.replace(/^␣/, ""), room);
}
