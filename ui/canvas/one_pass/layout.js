// @ts-check
// Where everything of the picture of one pass lies: from what is open to a list of items. Each item
// has a name of its own, so that a walk can move it from its old place to its new one.

/** @typedef {"whole" | "layer" | "head" | "matrix"} Level how far one has walked in */
/**
 * @typedef {{
 *   level: Level, layer: number, head: number, matrix: string,
 *   token: number, row: number, column: number,
 * }} Place
 */
/** @typedef {{ shape: number[], values: Float32Array }} Numbers */
/**
 * An item of the picture. `alpha`: 0 is not there. `rank`: what is drawn later lies above.
 * @typedef {{
 *   name: string, kind: string, x: number, y: number, w: number, h: number, alpha: number,
 *   layer?: number, head?: number, token?: number, text?: string, share?: number,
 *   numbers?: Numbers, tensor?: string, rank: number,
 * }} Item
 */
/** @typedef {{ width: number, height: number, rowHeight: number, top: number, phone: boolean }} Size */

const TOP = 58,
  ROWS_HEIGHT = 372,
  LOWEST_ROW = 5.5,
  HIGHEST_ROW = 24,
  BELOW = 96,
  STRIP_CELL = 3,
  STATION_GAP = 14,
  PREDICTIONS = 176,
  BARS = 10,
  LABELS = 84, // beside the first matrix of a row
  OPEN_SHARE = 0.78;

// The matrices of an open head in the order of the computation: name, what it is called, and what
// it was made of.
const STEPS = [
  { tensor: "q", title: "queries q", from: "x · W_Q" },
  { tensor: "k", title: "keys k", from: "x · W_K" },
  { tensor: "scores", title: "scores", from: "q · kᵀ" },
  { tensor: "scaled", title: "masked, scaled", from: "scores ÷ √d" },
  { tensor: "weights", title: "weights", from: "softmax of each row" },
  { tensor: "v", title: "values v", from: "x · W_V" },
  { tensor: "context", title: "context", from: "weights · v" },
  { tensor: "added", title: "added to the stream", from: "context · W_O" },
];

/** @type {(tokens: number, width: number) => Size} */
function sizeOf(tokens, width) {
  const rowHeight = Math.min(Math.max(ROWS_HEIGHT / tokens, LOWEST_ROW), HIGHEST_ROW);
  const rows = Math.max(rowHeight * tokens, 180);
  return { width, rowHeight, top: TOP, height: TOP + rows + BELOW, phone: width < 600 };
}

/** @type {(size: Size, token: number) => number} the middle of a token's row */
const rowMiddle = (size, token) => size.top + (token + 0.5) * size.rowHeight;

/**
 * Where the stations lie: tokens, embedding, layers, what comes next.
 * @type {(size: Size, strips: number, predicts: boolean) => Record<string, [number, number]>}
 */
function stations(size, strips, predicts) {
  const chips = Math.min(Math.max(size.width * 0.11, 56), 120);
  const embedding = strips * (16 * STRIP_CELL + 4);
  const right = predicts ? Math.min(PREDICTIONS, size.width * 0.2) : 16 * STRIP_CELL + 4;
  const first = chips + STATION_GAP + embedding + STATION_GAP;
  return {
    tokens: [0, chips],
    embedding: [chips + STATION_GAP, embedding],
    layers: [first, size.width - right - STATION_GAP - first],
    end: [size.width - right, right],
  };
}

/**
 * Left edge and width of each layer's slab; an open one takes most of the room.
 * @type {(place: Place, layers: number, station: [number, number]) => [number, number][]}
 */
function slabs(place, layers, [left, width]) {
  const isOpen = place.level !== "whole";
  const open = isOpen ? (layers === 1 ? width : width * OPEN_SHARE) : 0;
  const each = (width - open) / (isOpen ? Math.max(layers - 1, 1) : layers);
  /** @type {[number, number][]} */
  const places = [];
  for (let layer = 0, x = left; layer < layers; layer++) {
    const own = isOpen && layer === place.layer ? open : each;
    places.push([x, own]);
    x += own;
  }
  return places;
}

/**
 * The tiles of an open layer's heads, in the largest grid that fits.
 * @type {(heads: number, x: number, y: number, w: number, h: number) => [number, number, number][]}
 */
function tileGrid(heads, x, y, w, h) {
  let best = { tile: 0, across: 1 };
  for (let across = 1; across <= heads; across++) {
    const tile = Math.min(w / across, h / Math.ceil(heads / across));
    if (tile > best.tile) best = { tile, across };
  }
  return Array.from({ length: heads }, (_, head) => [
    x + (head % best.across) * best.tile,
    y + Math.floor(head / best.across) * best.tile,
    best.tile - 4,
  ]);
}

/**
 * The matrices of an open head: a grid in the order of the computation.
 * @type {(size: Size) => Map<string, { x: number, y: number, w: number, h: number }>}
 */
function matrixGrid(size) {
  const across = size.phone ? 2 : 5;
  const down = Math.ceil((STEPS.length + (size.phone ? 0 : 1)) / across);
  const left = size.phone ? 0 : LABELS,
    w = (size.width - left) / across,
    h = (size.height - 20) / down;
  const places = new Map();
  STEPS.forEach(({ tensor }, step) => {
    // on a desk the second row begins below the scores: values meet the weights there
    const at = size.phone || step < 5 ? step : step + 1;
    places.set(tensor, {
      x: left + (at % across) * w,
      y: 20 + Math.floor(at / across) * h,
      w: w - 18,
      h: h - 44,
    });
  });
  return places;
}

/**
 * Everything that is there at a place, with where each item comes from if it is new.
 * @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]}
 */
function scene(map, opened, place, size) {
  const inHead = place.level === "head" || place.level === "matrix";
  const items = [
    ...stationItems(map, place, size, inHead ? 0 : 1),
    ...slabItems(map, place, size, inHead ? 0 : 1),
  ];
  if (place.level === "layer") items.push(...layerItems(map, opened, place, size));
  if (inHead) items.push(...headItems(map, opened, place, size));
  return items;
}

/** @type {(map: PassData, place: Place, size: Size, alpha: number) => Item[]} */
function stationItems(map, place, size, alpha) {
  const parts = embeddingParts(map),
    at = stations(size, parts.length, !!map.next);
  const rows = size.rowHeight * map.labels.length;
  /** @type {Item[]} */
  const items = map.labels.map((text, token) => ({
    ...{ name: `chip ${token}`, kind: "chip", token, text, alpha, rank: 3 },
    ...{ x: at.tokens[0], y: size.top + token * size.rowHeight },
    ...{ w: at.tokens[1], h: size.rowHeight },
  }));
  const strip = 16 * STRIP_CELL;
  parts.forEach(({ tensor, title }, part) =>
    items.push({
      ...{ name: tensor, kind: "strip", tensor, text: title, alpha, rank: 2 },
      ...{ x: at.embedding[0] + part * (strip + 4), y: size.top, w: strip, h: rows },
    }),
  );
  if (!map.next) {
    items.push({
      ...{ name: "leaving", kind: "strip", tensor: "leaving", text: "out", alpha, rank: 2 },
      ...{ x: at.end[0], y: size.top, w: strip, h: rows },
    });
    return items;
  }
  const row = Math.min((size.height - size.top - 8) / BARS, 34);
  map.next.slice(0, BARS).forEach((text, choice) =>
    items.push({
      ...{ name: `bar ${choice}`, kind: "bar", share: choice, text, alpha, rank: 2 },
      ...{ x: at.end[0] + 10, y: size.top + choice * row, w: at.end[1] - 10, h: row - 4 },
    }),
  );
  return items;
}

/** @type {(map: PassData, place: Place, size: Size, alpha: number) => Item[]} */
function slabItems(map, place, size, alpha) {
  const at = stations(size, embeddingParts(map).length, !!map.next);
  const rows = size.rowHeight * map.labels.length;
  return slabs(place, map.layers, at.layers).flatMap(([x, w], layer) => {
    const slab = { name: `slab ${layer}`, kind: "slab", layer, x, w, y: size.top, h: rows };
    const guess = { name: `guess ${layer}`, kind: "guess", layer, x, w, y: size.top + rows };
    return [
      { ...slab, alpha, rank: 1 },
      { ...guess, h: BELOW, text: map.guesses[layer + 1], alpha: map.guesses.length ? alpha : 0, rank: 3 },
    ];
  });
}

/** @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]} */
function layerItems(map, opened, place, size) {
  const at = stations(size, embeddingParts(map).length, !!map.next);
  const [x, w] = slabs(place, map.layers, at.layers)[place.layer];
  const rows = size.rowHeight * map.labels.length,
    origin = `slab ${place.layer}`;
  const card = { x: x + w * 0.3, w: w * 0.44 };
  const tiles = tileGrid(map.heads, card.x, size.top + 4, card.w, rows - 8);
  /** @type {(Item & { origin?: string })[]} */
  const items = tiles.map(([left, top, tile], head) => ({
    ...{ name: `tile ${place.layer} ${head}`, kind: "tile", layer: place.layer, head, alpha: 1, rank: 4 },
    ...{ x: left, y: top, w: tile, h: tile, origin },
  }));
  items.push({
    ...{ name: `arcs ${place.layer}`, kind: "arcs", layer: place.layer, head: place.head, alpha: 1, rank: 2 },
    ...{ x: x + 6, y: size.top, w: w * 0.3 - 16, h: rows, origin },
  });
  if (opened?.layer === place.layer) {
    items.push({
      ...{ name: `neurons ${place.layer}`, kind: "neurons", layer: place.layer, alpha: 1, rank: 2 },
      ...{ x: x + w * 0.76, y: size.top, w: w * 0.24 - 8, h: rows, origin },
    });
  }
  return items;
}

/** @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]} */
function headItems(map, opened, place, size) {
  if (opened?.layer !== place.layer || opened.head !== place.head) return [];
  const origin = `tile ${place.layer} ${place.head}`;
  const grid = matrixGrid(size);
  /** @type {(Item & { origin?: string })[]} */
  const items = STEPS.map(({ tensor, title }) => ({
    ...{ name: `step ${tensor}`, kind: "matrix", tensor, text: title, alpha: 1, rank: 4, origin },
    .../** @type {{ x: number, y: number, w: number, h: number }} */ (grid.get(tensor)),
  }));
  if (place.level === "head") return items;
  const read = inputsOf(place.matrix);
  const side = size.phone ? size.width : size.width * 0.22;
  return items.flatMap((item) => {
    const input = read.indexOf(item.tensor ?? "");
    if (item.tensor === place.matrix) {
      const y = size.phone && read.length ? 170 : 24;
      const x = size.phone ? 0 : (read.length ? side + 24 : 0) + LABELS;
      return [{ ...item, x, y: y + 16, w: size.width - x - 8, h: size.height - y - 44, rank: 5 }];
    }
    if (input < 0) return [];
    const w = size.phone ? (size.width - 12) / read.length : side;
    const h = size.phone ? 110 : (size.height - 60) / read.length - 30;
    const x = size.phone ? input * (w + 12) : 0;
    return [{ ...item, x, y: size.phone ? 24 : 24 + input * (h + 44), w, h }];
  });
}

/** @type {(tensor: string) => string[]} the matrices that a matrix was computed from */
function inputsOf(tensor) {
  /** @type {Record<string, string[]>} */
  const made = {
    scores: ["q", "k"],
    scaled: ["scores"],
    weights: ["scaled"],
    context: ["weights", "v"],
    added: ["context"],
  };
  return made[tensor] ?? [];
}

/** @type {(map: PassData) => { tensor: string, title: string }[]} */
function embeddingParts(map) {
  const parts = [{ tensor: "token", title: "token" }];
  if (map.numbers.position) parts.push({ tensor: "position", title: "position" });
  return parts;
}
