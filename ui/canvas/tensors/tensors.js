// @ts-check
// Small tensors as nested grids. All text reaches the page through textContent or fillText.

const CELL_HEIGHT = 22,
  SMALL_CELL = 9,
  LABEL_HEIGHT = 13,
  FEW_ROWS = 4,
  MAX_LABEL = 84,
  TITLE = 16,
  BLOCK_GAP = 10,
  FRAME = 5;
const TEXT_LINE = 16,
  TEXT_GAP = 5,
  MARK = 10,
  MARGIN = 4;
const NUMBERED_ROOM = 1000; // so wide a block keeps its numbers, and scrolls where there is less room
const PANEL_GAP = [26, 16],
  TEXT_ROOM = 540,
  MIN_TEXT_ROOM = 200;
// What moves, in milliseconds at the usual speed: a flight, and a sweep over all cells of a result.
const FLIGHT = 600,
  SWEEP = 2400,
  CELL_OF_A_SWEEP = [30, 160],
  MOST_FLIGHTS = 400;
const WEIGHTS = "weights",
  SCORES = "scores";
const HINT = "Hover, tap, or focus a tensor and use the arrow keys to read a value.";

// The parts of the body follow one another: of each panel its values, its identities, its operands.
/** @typedef {string[] | string[][]} Labels */
/**
 * How the numbers of a panel were computed, as `Made` in ui/canvas/tensors/__init__.py.
 * @typedef {{
 *   kind: "product" | "rotated" | "scaled" | "masked" | "softmax" | "dropout",
 *   reads: [identity: string, axes: (number[] | null)[]][],
 *   nOperands: number, nTerms: number, operands: Float32Array, added: Float32Array | null,
 * }} Made
 * What is pointed at: its identity where it was only moved, and the cells that it was made of: the
 * indices read along each axis of a panel, null for all.
 * @typedef {{
 *   cell: number, strand: string, read: { identity: string, axes: (number[] | null)[] }[],
 * }} Lit
 */
/**
 * Where numbers that were read lie in the window, and of which block of which tensor they are.
 * @typedef {{ what: string, box: DOMRect, hue: string }} ReadBox
 * A tensor as ui/canvas/tensors/__init__.py describes it, with what is worked out from that here.
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
 *   height: number }} Place
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
  // weights of one picture are compared: they have one scale
  const weighed = header.panels.filter((/** @type {Panel} */ panel) => panel.quantity === WEIGHTS);
  const largest = Math.max(...weighed.map((/** @type {Panel} */ panel) => panel.largest));
  for (const panel of weighed) panel.largest = largest;
  return header;
}

/**
 * @param {number[]} shape
 * @param {number[]} index
 */
function flat(shape, index) {
  return index.reduce((at, i, axis) => at * shape[axis] + i, 0);
}

/**
 * @param {number[]} shape
 * @param {number} at
 */
function unflat(shape, at) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(at % shape[axis]);
    at = Math.floor(at / shape[axis]);
  }
  return index;
}

// a cell that has its place, but is not there yet
/**
 * @param {Panel} panel
 * @param {number} at
 */
function isThere(panel, at) {
  const [rows, columns] = panel.grid,
    inside = at % (rows * columns);
  return Math.floor(inside / columns) < panel.there[0] && inside % columns < panel.there[1];
}

/**
 * @param {Panel} panel
 * @param {number} at
 */
function isBoxed(panel, at) {
  if (!panel.box) return false;
  const [rows, columns] = panel.grid,
    inside = at % (rows * columns);
  return Math.floor(inside / columns) < panel.box[0] && inside % columns < panel.box[1];
}

// the index along one axis: where the panel is a window, that in the whole tensor
/**
 * @param {Panel} panel
 * @param {number} axis
 * @param {number} i
 */
const real = (panel, axis, i) => (panel.positions ? panel.positions[axis][i] : i);

// labels that differ along the first axis are nested: those of one of its indices
/** @type {(labels: Labels | null, first: number) => string[]} */
const labelsOf = (labels, first) =>
  /** @type {string[]} */ (labels && Array.isArray(labels[0]) ? labels[first] : (labels ?? []));

/**
 * @param {number} value
 * @param {number} decimals
 */
function written(value, decimals) {
  if (Number.isNaN(value)) return "nan";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const long = size >= 10000 || (size > 0 && size < 0.5 * 10 ** -decimals);
  return long ? number(value, 1) : minus(value.toFixed(size >= 100 ? 0 : decimals));
}

// three significant digits: enough to check a sum by hand
/** @param {number} value */
const brief = (value) => number(value, 3);

// the ends of the shortest way between two stretches; the middle of what they share
/** @type {(a: number, b: number, c: number, d: number) => [number, number]} */
function gap(a, b, c, d) {
  if (b < c) return [b, c];
  if (d < a) return [a, d];
  const middle = (Math.max(a, c) + Math.min(b, d)) / 2;
  return [middle, middle];
}

// what is between two terms of a sum, and the second of them without its sign
/** @param {string} text */
const plus = (text) => (text.startsWith("−") ? ` − ${text.slice(1)}` : ` + ${text}`);

/**
 * How one number was computed, in digits.
 * @param {Panel} panel
 * @param {number} at
 */
function arithmetic({ made, values }, at) {
  if (!made) return "";
  const result = brief(values[at]);
  const pairs = Array.from({ length: made.nOperands }, (_, i) => {
    const first = 2 * (at * made.nOperands + i);
    return [made.operands[first], made.operands[first + 1]];
  });
  const products = pairs.map(([a, b]) => `${brief(a)}·${brief(b).replace(/^−.*$/, "($&)")}`);
  const powers = pairs.map(([a, b], i) => (b === 1 ? `e^${brief(a)}` : `e^(${products[i]})`));
  /** @type {(terms: string[], n: number) => string} */
  const sum = (terms, n) =>
    terms.reduce((text, term) => text + plus(term)) + (n > 0 ? ` + … (${n} more)` : "");
  const more = made.nTerms - products.length;
  if (made.kind === "softmax") {
    return `${result} = ${powers[0]} / (${sum(powers.slice(1), more + 1)})`;
  }
  if (made.kind === "masked" && values[at] === -Infinity) {
    return `${result}: the query may not look at this key`;
  }
  if (made.kind === "masked") return `${result} = ${brief(pairs[0][0])}, which may be looked at`;
  // a weight that the mask made 0 was not dropped
  if (made.kind === "dropout" && values[at] === 0 && pairs[0][0] !== 0) return "0: dropped";
  const bias = made.added ? plus(brief(made.added[at])) + " (bias)" : "";
  return `${result} = ${sum(products, more)}${bias}`;
}

// as `shorten`; where room is short, the mark of a space before a word gives way to its letters
/**
 * @param {Pen} context
 * @param {string} text
 * @param {number} room
 */
function shortest(context, text, room) {
  const fits = context.measureText(text).width <= room;
  return shorten(context, fits || text.length < 2 ? text : text.replace(/^␣/, ""), room);
}

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  hasItsHeight(parentElement);
  const root = element(parentElement, ".tensors"),
    holder = element(parentElement, ".panels");
  const readout = element(parentElement, ".readout"),
    sumLine = element(parentElement, ".arithmetic"),
    lines = element(parentElement, ".reads"),
    moving = element(parentElement, ".moving"),
    { listen, forget } = hearing();
  const picture = unpackPanels(data);
  /** @type {Lit | null} what is pointed at, here or in a linked picture */
  let lit = null;
  /** @type {{ panel: Panel, at: number } | null} when it is pointed at here */
  let focus = null;
  let sweep = 0; // the timer of a sweep over a result; 0: none

  // ---- layout: where every block and cell of a panel lies, in CSS pixels

  /**
   * @param {Panel} panel
   * @param {Pen} context
   * @param {number} room
   */
  function arrange(panel, context, room) {
    context.font = LABEL;
    const [rows, columns] = panel.grid;
    /** @param {string[]} texts */
    const width = (texts) => Math.max(0, ...texts.map((text) => context.measureText(text).width));
    const label = panel.rows ? Math.ceil(Math.min(width(panel.rows.flat()), MAX_LABEL)) + 6 : 0;
    const head = panel.columns ? TITLE : 0;
    context.font = SMALL_LABEL;
    const numbers =
      Math.ceil(width([...panel.values].map((v) => written(v, picture.decimals)))) + 8;
    const labelled = panel.columns ? Math.min(Math.ceil(width(panel.columns.flat())) + 6, 56) : 0;
    const wanted = Math.max(numbers, labelled, CELL_HEIGHT);
    const blocks = panel.outer.length ? panel.outer[panel.outer.length - 1] : 1;
    const stacks = panel.outer.length > 1 ? panel.outer[0] : 1;
    const title = panel.outer.length ? TITLE : 0;
    const asBlock = (/** @type {number} */ cell) => label + columns * cell;
    // numbers are written where a block with them is not too wide; else cells are small squares
    const numbered = asBlock(wanted) + 2 * FRAME <= Math.max(room, NUMBERED_ROOM);
    const cellWidth = numbered
      ? wanted
      : Math.max(SMALL_CELL, Math.min(CELL_HEIGHT, (room - label - 2 * FRAME - 1) / columns));
    // few rows are tall enough for all their labels
    const tall = panel.rows && rows <= FEW_ROWS ? LABEL_HEIGHT : 0;
    const cellHeight = numbered ? CELL_HEIGHT : Math.min(CELL_HEIGHT, Math.max(cellWidth, tall));
    const blockWidth = asBlock(cellWidth),
      blockHeight = title + head + rows * cellHeight;
    const across = Math.max(
      1,
      Math.min(blocks, Math.floor((room - 2 * FRAME + BLOCK_GAP) / (blockWidth + BLOCK_GAP))),
    );
    const lines = Math.ceil(blocks / across);
    const stackTitle = stacks > 1 || panel.outer.length > 1 ? TITLE : 0;
    const stackHeight = stackTitle + lines * (blockHeight + BLOCK_GAP) - BLOCK_GAP + 2 * FRAME;
    const frame = panel.outer.length > 1 ? FRAME : 0;
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
  function corner(panel, block) {
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

  /**
   * @param {Panel} panel
   * @param {number} at
   */
  function box(panel, at) {
    const l = panel.layout,
      [rows, columns] = panel.grid;
    const { x, y } = corner(panel, Math.floor(at / (rows * columns)));
    const inside = at % (rows * columns);
    return {
      x: x + l.label + (inside % columns) * l.cellWidth,
      y: y + l.title + l.head + Math.floor(inside / columns) * l.cellHeight,
    };
  }

  // ---- colours

  // the step that computes scores or weights moves nothing: they show how large they are
  const byIdentity = (/** @type {Panel} */ panel) =>
    picture.colour === "identity" && panel.quantity !== WEIGHTS && panel.quantity !== SCORES;
  const onDark = () => bright(rgb(getComputedStyle(root).color));

  /** @type {(panel: Panel, at: number, paper: Rgb) => Rgb} */
  function fill(panel, at, paper) {
    if (byIdentity(panel)) {
      const [rows, width] = picture.palette;
      const cell = panel.cells?.[at] ?? -1,
        exact = cell >= 0;
      const id = exact ? cell : (panel.groups?.[at] ?? -1);
      if (id < 0) return mix(paper, [128, 128, 128], 0.25);
      const row = Math.floor(id / width),
        place = exact && width > 1 ? (id % width) / (width - 1) : 0.5;
      return identityColour(row, rows, place);
    }
    const value = panel.values[at];
    if (!Number.isFinite(value)) return mix(paper, [128, 128, 128], 0.3);
    const share = value / panel.largest;
    return panel.quantity === WEIGHTS
      ? colourNumbers(share)
      : divergingNumbers(share, bright(paper) === false);
  }

  /**
   * @param {Panel} panel
   * @param {number} at
   */
  function isLit(panel, at) {
    if (!lit || !isThere(panel, at)) return false;
    if (focus !== null && focus.panel === panel && focus.at === at) return true;
    if (panel.cells && lit.cell >= 0 && panel.strand === lit.strand) {
      return panel.cells[at] === lit.cell;
    }
    return isRead(panel, at);
  }

  /**
   * Whether the number that is pointed at was computed from this cell.
   * @param {Panel} panel
   * @param {number} at
   */
  function isRead(panel, at) {
    if (!lit || !isThere(panel, at)) return false;
    const index = unflat(panel.shape, at);
    return lit.read.some(
      ({ identity, axes }) =>
        identity === panel.identity &&
        axes.every((all, axis) => all === null || all.includes(real(panel, axis, index[axis]))),
    );
  }

  // ---- drawing

  /** @param {Panel} panel */
  function draw(panel) {
    const room = root.clientWidth;
    if (room === 0) return; // not laid out yet: the observer calls again
    const context = pen(panel.canvas);
    panel.layout = arrange(panel, context, room);
    const l = panel.layout,
      ratio = window.devicePixelRatio || 1;
    panel.canvas.width = Math.round(l.width * ratio);
    panel.canvas.height = Math.round(l.height * ratio);
    panel.canvas.style.width = `${l.width}px`;
    panel.canvas.style.height = `${l.height}px`;
    context.scale(ratio, ratio);
    paint(panel, context);
    // where the first cell lies, how large cells are and which are framed, for whoever reads the
    // picture by program
    const first = box(panel, 0);
    const framed = [...panel.values.keys()].filter((at) => isLit(panel, at));
    Object.assign(panel.canvas.dataset, {
      framed: framed.join(" "),
      left: first.x,
      top: first.y,
      cellWidth: l.cellWidth,
      cellHeight: l.cellHeight,
    });
  }

  /**
   * @param {Panel} panel
   * @param {Pen} context
   */
  function paint(panel, context) {
    const l = panel.layout,
      ink = getComputedStyle(panel.canvas).color;
    /** @type {Rgb} */
    const paper = bright(rgb(ink)) ? [16, 20, 26] : [255, 255, 255];
    context.textBaseline = "middle";
    const blocks = l.blocks * l.stacks;
    for (let block = 0; block < blocks; block++) labels(panel, context, ink, block);
    for (let at = 0; at < panel.values.length; at++) {
      if (!isThere(panel, at)) continue;
      const { x, y } = box(panel, at);
      const tone = fill(panel, at, paper);
      context.fillStyle = css(tone);
      context.fillRect(x, y, l.cellWidth - 1, l.cellHeight - 1);
      if (l.numbered) {
        context.font = SMALL_LABEL;
        context.textAlign = "right";
        context.fillStyle = readable(tone);
        context.fillText(
          written(panel.values[at], picture.decimals),
          x + l.cellWidth - 5,
          y + l.cellHeight / 2,
        );
      }
    }
    for (let at = 0; at < panel.values.length; at++) {
      if (!isThere(panel, at)) continue;
      if (panel.marked.has(at)) frame(context, panel, at, [[ink, 2]]);
      if (isLit(panel, at))
        frame(context, panel, at, [
          ["black", 4],
          ["white", 2],
        ]);
    }
    if (panel.box && Math.min(...panel.box) > 0) outline(context, panel, panel.box, ink, paper);
  }

  // one thick frame around the boxed part, and hatched over it: seen without colours too
  /**
   * @param {Pen} context
   * @param {Panel} panel
   * @param {[rows: number, columns: number]} boxed
   * @param {string} ink
   * @param {Rgb} paper
   */
  function outline(context, panel, [rows, columns], ink, paper) {
    const { x, y } = box(panel, 0),
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
    for (const [tone, thick] of /** @type {[string, number][]} */ ([
      [css(paper), 6],
      [ink, 3],
    ])) {
      context.strokeStyle = tone;
      context.lineWidth = thick;
      context.strokeRect(x, y, width, height);
    }
  }

  /**
   * @param {Pen} context
   * @param {Panel} panel
   * @param {number} at
   * @param {[string, number][]} strokes
   */
  function frame(context, panel, at, strokes) {
    const { x, y } = box(panel, at),
      l = panel.layout;
    for (const [tone, width] of strokes) {
      context.strokeStyle = tone;
      context.lineWidth = width;
      context.strokeRect(x, y, l.cellWidth - 1, l.cellHeight - 1);
    }
  }

  /**
   * @param {Panel} panel
   * @param {Pen} context
   * @param {string} ink
   * @param {number} block
   */
  function labels(panel, context, ink, block) {
    const l = panel.layout,
      { x, y } = corner(panel, block);
    context.fillStyle = ink;
    context.font = SMALL_LABEL;
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
    context.font = LABEL;
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
      context.font = SMALL_LABEL;
      const every = Math.ceil(16 / l.cellWidth);
      for (let column = 0; column < panel.there[1]; column += every) {
        const text = shortest(context, columnTexts[column], every * l.cellWidth - 2);
        // a box's thick edge lies above the first row: the label keeps clear of it
        const middle = y + l.title + TITLE / 2 - (panel.box ? 2 : 0);
        context.fillText(text, x + l.label + (column + 0.5) * l.cellWidth, middle);
      }
    }
  }

  // ---- the picture to take away: the panels with what is written above and below each of them

  // Beside each other while there is room, as on the page.
  /** @type {(context: Pen, room: number) => Place[]} */
  function places(context, room) {
    const most = Math.min(Math.max(room, MIN_TEXT_ROOM), TEXT_ROOM);
    let x = 0,
      y = 0,
      tallest = 0;
    return picture.panels.map((panel) => {
      context.font = SMALL_LABEL;
      const above = wrap(context, panel.shapeText, most),
        below = wrap(context, panel.note, most);
      const widths = [...above, ...below].map((text) => context.measureText(text).width);
      context.font = HEADING;
      const width = Math.max(panel.layout.width, context.measureText(panel.name).width, ...widths);
      const height =
        (1 + above.length + below.length) * TEXT_LINE + panel.layout.height + 2 * TEXT_GAP;
      if (x > 0 && x + width > room) [x, y, tallest] = [0, y + tallest + PANEL_GAP[1], 0];
      const place = { panel, above, below, x, y, width, height };
      x += width + PANEL_GAP[0];
      tallest = Math.max(tallest, height);
      return place;
    });
  }

  function pictureOfAll() {
    if (picture.panels.some((panel) => !panel.layout)) return null;
    const all = places(pen(document.createElement("canvas")), root.clientWidth);
    return {
      width: Math.ceil(Math.max(...all.map(({ x, width }) => x + width))) + 2 * MARGIN,
      height: Math.ceil(Math.max(...all.map(({ y, height }) => y + height))) + 2 * MARGIN,
      draw: (/** @type {Pen} */ context) => {
        for (const place of all) drawPlace(context, place);
      },
      element: root,
      title: "",
      says: picture.says,
      about: picture.about,
      name: picture.panels.map((panel) => panel.name).join(" "),
      scales: scales(),
    };
  }

  // what the colours mean; every tensor without weights has a scale of its own
  function scales() {
    const { panels } = picture,
      weighed = panels.find((panel) => panel.quantity === WEIGHTS);
    /** @type {Scale[]} */
    const found = [];
    if (weighed) {
      found.push({ tone: colour, low: "0", high: number(weighed.largest, 3), text: "weights" });
    }
    if (panels.some((panel) => panel.quantity !== WEIGHTS && !byIdentity(panel))) {
      const tone = (/** @type {number} */ share) => diverging(2 * share - 1, onDark());
      found.push({ tone, low: "below 0", high: "above 0, up to each tensor's largest", text: "" });
    }
    if (panels.some(byIdentity)) {
      const text = `Each colour is a ${picture.hue}: the one that a number comes from or belongs to.`;
      found.push({ text });
    }
    return found;
  }

  /** @type {(context: Pen, place: Place) => void} */
  function drawPlace(context, { panel, above, below, x, y }) {
    let line = 0;
    /**
     * @param {string} text
     * @param {string} font
     */
    const say = (text, font) => {
      context.font = font;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillStyle = getComputedStyle(root).color;
      context.fillText(text, 0, (line + 0.5) * TEXT_LINE);
      line += 1;
    };
    context.save();
    context.translate(x + MARGIN, y + MARGIN);
    const hue = QUANTITIES[panel.quantity];
    if (hue) {
      context.fillStyle = hue;
      context.fillRect(0, 3, MARK, MARK);
      context.translate(MARK + MARGIN, 0);
    }
    say(panel.name, HEADING);
    if (hue) context.translate(-MARK - MARGIN, 0);
    for (const text of above) say(text, SMALL_LABEL);
    context.save();
    context.translate(0, line * TEXT_LINE + TEXT_GAP);
    paint(panel, context);
    context.restore();
    context.translate(0, panel.layout.height + 2 * TEXT_GAP);
    for (const text of below) say(text, SMALL_LABEL);
    context.restore();
  }

  // ---- reading a value

  function tell() {
    sumLine.textContent = focus === null ? "" : arithmetic(focus.panel, focus.at);
    if (focus === null) {
      readout.textContent = HINT;
      return;
    }
    const { panel, at } = focus;
    const index = unflat(panel.shape, at);
    const named = index.map((i, axis) => {
      const last = panel.shape.length - 1;
      const texts = labelsOf(
        [panel.columns, panel.rows, panel.blocks][last - axis] ?? null,
        index[0],
      );
      const name = `${panel.axes[axis]} ${real(panel, axis, i)}`;
      return texts.length ? `${name} “${isolated(texts[i])}”` : name;
    });
    const value = panel.values[at];
    const shown = Number.isFinite(value) ? number(value, 6) : written(value, 0);
    const boxed = isBoxed(panel, at) ? `, ${panel.boxNote}` : "";
    readout.textContent = `${panel.name}[${index.map((i, axis) => real(panel, axis, i)).join(", ")}] = ${shown} (${named.join(", ")})${boxed}`;
  }

  /** @type {(panel: Panel, at: number) => Lit} */
  function litBy(panel, at) {
    const index = unflat(panel.shape, at).map((i, axis) => real(panel, axis, i));
    const read = (panel.made?.reads ?? []).map(([identity, axes]) => ({
      identity,
      axes: axes.map((follows) => follows && readAlong(follows, index)),
    }));
    return { cell: panel.cells ? panel.cells[at] : -1, strand: panel.strand, read };
  }

  /** @type {(follows: number[], index: number[]) => number[]} */
  function readAlong([axis, group, half, heads, columns], index) {
    const own = Math.floor(index[axis] / group) + index[heads] * columns;
    return half ? [own, (own + half) % (2 * half)] : [own];
  }

  /** @type {(panel: Panel | null, at: number) => void} */
  function light(panel, at) {
    focus = panel === null ? null : { panel, at };
    lit = panel === null ? null : litBy(panel, at);
    tell();
    picture.panels.forEach(draw);
    const read = readBoxes();
    if (picture.link) {
      const detail = { link: picture.link, lit, from: root, read };
      window.dispatchEvent(new CustomEvent("attention-lab-light", { detail }));
    }
    drawLines(read);
  }

  // whoever hears this adds where the numbers that were read lie in its own picture
  listen(window, "attention-lab-light", ({ detail }) => {
    if (!picture.link || detail.link !== picture.link || detail.from === root) return;
    if (sweep) stopSweep();
    lit = detail.lit;
    focus = null;
    picture.panels.forEach(draw);
    drawLines([]);
    detail.read.push(...readBoxes());
  });

  // ---- lines from the number that is pointed at to the numbers it was computed from

  /**
   * Where some cells of a panel lie in the window; those of a picture that is folded away nowhere.
   * @param {Panel} panel
   * @param {number[]} cells
   */
  function inWindow(panel, cells) {
    const { left, top } = panel.canvas.getBoundingClientRect(),
      corners = cells.map((at) => box(panel, at)),
      x = corners.map((corner) => corner.x),
      y = corners.map((corner) => corner.y);
    return new DOMRect(
      left + Math.min(...x),
      top + Math.min(...y),
      Math.max(...x) - Math.min(...x) + panel.layout.cellWidth - 1,
      Math.max(...y) - Math.min(...y) + panel.layout.cellHeight - 1,
    );
  }

  // one box for each block of each panel: a row, a column or a single number
  /** @type {() => ReadBox[]} */
  function readBoxes() {
    if (!lit || lit.read.length === 0) return [];
    return picture.panels.flatMap((panel) => {
      if (!panel.layout || !panel.canvas.checkVisibility()) return [];
      const size = panel.grid[0] * panel.grid[1];
      const read = [...panel.values.keys()].filter((at) => isRead(panel, at));
      const blocks = [...new Set(read.map((at) => Math.floor(at / size)))];
      return blocks.map((block) => {
        const cells = read.filter((at) => Math.floor(at / size) === block);
        const hue = QUANTITIES[panel.quantity] ?? "";
        return { what: `${panel.identity} ${block}`, box: inWindow(panel, cells), hue };
      });
    });
  }

  // where a tensor is drawn twice, the line leads to the nearer drawing
  /** @param {ReadBox[]} read */
  function drawLines(read) {
    const drawing = document.createElementNS(SVG, "svg");
    lines.replaceChildren(drawing);
    if (focus === null) return;
    const from = inWindow(focus.panel, [focus.at]),
      { left, top } = root.getBoundingClientRect();
    /** @type {Map<string, { length: number, hue: string, ends: Record<string, number> }>} */
    const shortest = new Map();
    for (const { what, box: to, hue } of read) {
      const [x1, x2] = gap(from.left, from.right, to.left, to.right),
        [y1, y2] = gap(from.top, from.bottom, to.top, to.bottom);
      const length = Math.hypot(x2 - x1, y2 - y1);
      if (length >= (shortest.get(what)?.length ?? Infinity)) continue;
      shortest.set(what, {
        length,
        hue,
        ends: { x1: x1 - left, y1: y1 - top, x2: x2 - left, y2: y2 - top },
      });
    }
    for (const { ends, hue } of shortest.values()) {
      const line = document.createElementNS(SVG, "line");
      line.style.stroke = hue;
      for (const [name, place] of Object.entries(ends)) line.setAttribute(name, String(place));
      drawing.append(line);
    }
  }

  // ---- movement: what was only moved flies from where it was, what is computed is swept over

  /** @type {(panel: Panel, at: number) => string} what a number that is only moved is known by */
  const strandOf = (panel, at) => `${panel.strand} ${panel.cells?.[at] ?? -1}`;

  // whoever hears this says where such numbers are drawn in its own picture
  listen(window, "attention-lab-where", ({ detail }) => {
    if (!picture.link || detail.link !== picture.link || detail.from === root) return;
    for (const panel of picture.panels) {
      if (!panel.cells || !panel.layout || !panel.canvas.checkVisibility()) continue;
      for (const at of panel.values.keys()) {
        const name = strandOf(panel, at);
        if (isThere(panel, at) && panel.cells[at] >= 0 && !detail.found.has(name)) {
          detail.found.set(name, inWindow(panel, [at]));
        }
      }
    }
  });

  function move() {
    /** @type {Map<string, DOMRect>} */
    const found = new Map();
    const detail = { link: picture.link, from: root, found };
    window.dispatchEvent(new CustomEvent("attention-lab-where", { detail }));
    const drawn = picture.panels.filter((panel) => panel.layout),
      computed = drawn.find((panel) => panel.made);
    for (const panel of drawn) if (!panel.made) fly(panel, found);
    if (computed) sweepOver(computed);
    const flights = moving.getAnimations({ subtree: true }).map((flight) => flight.finished);
    Promise.all(flights).then(
      () => moving.replaceChildren(),
      () => {}, // the drawing has left the page
    );
  }

  /** @type {(panel: Panel, found: Map<string, DOMRect>) => void} */
  function fly(panel, found) {
    const cells = [...panel.values.keys()].filter(
      (at) => isThere(panel, at) && found.has(strandOf(panel, at)),
    );
    if (!cells.length || cells.length > MOST_FLIGHTS) return;
    const { left, top } = root.getBoundingClientRect(),
      duration = FLIGHT / picture.speed;
    /** @type {Rgb} */
    const paper = bright(rgb(getComputedStyle(panel.canvas).color))
      ? [16, 20, 26]
      : [255, 255, 255];
    for (const at of cells) {
      const from = /** @type {DOMRect} */ (found.get(strandOf(panel, at))),
        to = inWindow(panel, [at]),
        tone = fill(panel, at, paper);
      const cell = document.createElement("span");
      if (panel.layout.numbered) cell.textContent = written(panel.values[at], picture.decimals);
      Object.assign(cell.style, {
        left: `${to.left - left}px`,
        top: `${to.top - top}px`,
        width: `${to.width}px`,
        height: `${to.height}px`,
        lineHeight: `${to.height}px`,
        background: css(tone),
        color: readable(tone),
      });
      moving.append(cell);
      const away = `translate(${from.left - to.left}px, ${from.top - to.top}px)`;
      cell.animate([{ transform: away }, { transform: "none" }], {
        duration,
        easing: "ease-in-out",
      });
    }
    panel.canvas.animate([{ opacity: 0.15 }, { opacity: 0.15, offset: 0.9 }, { opacity: 1 }], {
      duration,
    });
  }

  // each number of a result in turn, with what it is computed from framed
  /** @param {Panel} panel */
  function sweepOver(panel) {
    const cells = [...panel.values.keys()].filter((at) => isThere(panel, at));
    const [least, most] = CELL_OF_A_SWEEP,
      each = Math.min(Math.max(SWEEP / cells.length, least), most) / picture.speed;
    sumLine.setAttribute("aria-live", "off"); // too fast to be read aloud
    readout.setAttribute("aria-live", "off");
    const next = () => {
      const at = cells.shift();
      if (at === undefined) {
        stopSweep();
        return light(null, 0);
      }
      light(panel, at);
      sweep = window.setTimeout(next, each);
    };
    next();
  }

  function stopSweep() {
    window.clearTimeout(sweep);
    sweep = 0;
    sumLine.setAttribute("aria-live", "polite");
    readout.setAttribute("aria-live", "polite");
  }

  // whoever points at a number wants to read that one
  for (const act of ["pointermove", "pointerdown", "keydown"]) {
    listen(root, act, () => sweep && stopSweep());
  }

  /**
   * @param {Panel} panel
   * @param {PointerEvent} event
   */
  function at(panel, event) {
    const bounds = panel.canvas.getBoundingClientRect(),
      l = panel.layout;
    const px = event.clientX - bounds.left,
      py = event.clientY - bounds.top;
    for (let block = 0; block < l.blocks * l.stacks; block++) {
      const { x, y } = corner(panel, block);
      const column = Math.floor((px - x - l.label) / l.cellWidth);
      const row = Math.floor((py - y - l.title - l.head) / l.cellHeight);
      if (row >= 0 && column >= 0 && row < panel.grid[0] && column < panel.grid[1]) {
        const found = (block * panel.grid[0] + row) * panel.grid[1] + column;
        return isThere(panel, found) ? found : -1;
      }
    }
    return -1;
  }

  /** @type {Record<string, [number, number]>} */
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  /** @type {(panel: Panel, event: KeyboardEvent) => void} */
  function onKey(panel, event) {
    if (event.key === "Escape") return light(null, 0);
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    if (focus === null || focus.panel !== panel) return light(panel, 0);
    const columns = panel.grid[1],
      next = focus.at + step[0] * columns + step[1];
    if (next >= 0 && next < panel.values.length && isThere(panel, next)) light(panel, next);
  }

  /** @param {Panel} panel */
  function build(panel) {
    const figure = document.createElement("figure");
    figure.className = "panel";
    /**
     * @param {string} tag
     * @param {string} className
     * @param {string} text
     */
    const part = (tag, className, text) => {
      const element = document.createElement(tag);
      element.className = className;
      element.textContent = text;
      figure.append(element);
      return element;
    };
    part("div", "name", panel.name).style.setProperty(
      "--hue",
      QUANTITIES[panel.quantity] ?? "transparent",
    );
    part("div", "shape", panel.shapeText);
    const scroll = part("div", "scroll", "");
    panel.canvas = document.createElement("canvas");
    panel.canvas.tabIndex = 0;
    panel.canvas.setAttribute("role", "img");
    panel.canvas.setAttribute(
      "aria-label",
      `${panel.name} ${panel.shapeText}. Use the arrow keys to read values.`,
    );
    scroll.append(panel.canvas);
    if (panel.note) part("div", "note", panel.note);
    holder.append(figure);
    const point = (/** @type {PointerEvent} */ event) => {
      const found = panel.layout ? at(panel, event) : -1;
      if (found >= 0 && !(focus && focus.panel === panel && focus.at === found))
        light(panel, found);
    };
    listen(panel.canvas, "pointermove", point);
    listen(panel.canvas, "pointerdown", point);
    listen(
      panel.canvas,
      "pointerleave",
      (event) => event.pointerType === "mouse" && light(null, 0),
    );
    listen(panel.canvas, "keydown", (event) => onKey(panel, event));
    listen(panel.canvas, "transitionend", () => {
      draw(panel); // the theme changed
      showScales();
    });
  }

  holder.replaceChildren();
  picture.panels.forEach(build);
  listen(holder, "scroll", () => focus && drawLines(readBoxes()));
  readout.textContent = HINT;
  const showScales = () => showLegend(element(parentElement, ".key"), picture.says, scales());
  showScales();
  sumLine.hidden = !picture.panels.some((panel) => panel.made);

  offerToSave(parentElement, listen, pictureOfAll, (text) => {
    readout.textContent = text;
  });

  picture.panels.forEach(draw);
  drawLines([]); // those of a step before may be left
  moving.replaceChildren();
  const before = root.dataset.scene,
    still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (picture.scene) root.dataset.scene = picture.scene;
  if (picture.scene && before && before !== picture.scene && !still) move();
  const stopWatching = onNewWidth(root, () => {
    picture.panels.forEach(draw);
    drawLines([]);
  });

  return inPlaceOfTheLast(parentElement, () => {
    window.clearTimeout(sweep);
    stopWatching();
    forget();
  });
}
