// @ts-check
// Lays out the one-pass picture: turns the visitor's location into a list of items. Each item has a
// unique name, so an animation can move it from its old position to the new one.

/** @typedef {"whole" | "layer" | "head" | "matrix"} Level the zoom level */
/**
 * The parts that are open and selected. `token`: the selected word. `detail`: how much of the flow
 * is drawn, as an index into MIN_SHARES. `why`: the index of the explained next word, or -1.
 * @typedef {{
 *   level: Level, layer: number, head: number, matrix: string,
 *   token: number, row: number, column: number, detail: number, why: number,
 * }} Place
 */
/** @typedef {{ shape: number[], values: Float32Array }} Numbers */
/**
 * Packed by ui/canvas/one_pass/picture.py: the header's fields, and `numbers` by tensor name.
 * @typedef {{
 *   title: string, subtitle: string, model: string, picture: string, labels: string[], roles: string[],
 *   says: string,
 *   layers: number, heads: number, causal: boolean, headSize: number, guesses: string[],
 *   next: string[] | null, levels: number, largest: number[], about?: About,
 *   numbers: Record<string, Numbers>, body: Uint8Array<ArrayBuffer>,
 *   off: string[], decoder: boolean, away: Record<string, string> | null,
 *   place: (Partial<Place> & { told: number }) | null, first: Partial<Place>,
 *   play: Played | null, temperature?: number, topK?: number, lookOnly?: boolean,
 * }} PassData
 */
/**
 * The open layer and head. `missing`: why the head's numbers aren't available.
 * @typedef {{
 *   says: string, picture: string, layer: number, head: number, scale: number, captions: Caption[],
 *   numbers: Record<string, Numbers>, missing?: string,
 * }} Opened
 */
/**
 * An item of the picture. `alpha`: 0 is invisible. `rank`: items with a higher rank are drawn on top.
 * @typedef {{
 *   name: string, kind: string, x: number, y: number, w: number, h: number, alpha: number,
 *   layer?: number, head?: number, token?: number, text?: string, choice?: number,
 *   tensor?: string, rank: number,
 * }} Item
 */
/**
 * The picture's size in CSS pixels. On a desktop, layers go from left to right and tokens from top to
 * bottom; on a phone, it's the other way around. `pitch`: the distance between tokens. `first`: the
 * start of the first token. `along`: the end of the layers.
 * @typedef {{
 *   width: number, height: number, phone: boolean, pitch: number, first: number, along: number,
 * }} Size
 */

const TOP = 42, // space above the first word, for the layer numbers
  ROWS_HEIGHT = 430,
  LEAST_ROWS = 280,
  LOWEST_ROW = 15, // high enough for a label on every row
  HIGHEST_ROW = 40,
  BOTTOM = 8,
  STATION_GAP = 14,
  WAY_OUT = 44, // between the last layer and the predictions
  WORDS = [64, 132], // minimum and maximum width of the words
  NEXT_WIDTH = [150, 216],
  BARS = 7,
  BAR_HEIGHT = 36,
  LABELS = 84, // next to the first matrix of a row
  PHONE_BELOW = 600,
  PHONE_WORDS = 72,
  PHONE_LAYER = 14,
  PHONE_MARGIN = 26, // space left of the lines, for the layer numbers
  BARS_ON_A_PHONE = 5,
  OPEN_SHARE = 0.78;

// The matrices of an open head in the order of the computation: tensor name, title, and formula.
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

/** @type {(map: PassData, tensor: string) => string} the formula of a matrix of an open head */
function inputsOfTensor({ off }, tensor) {
  if (tensor === "scaled" && off.includes("scale")) return "scores, not divided by √d";
  return STEPS.find((step) => step.tensor === tensor)?.from ?? "";
}

/**
 * `room`: the height of the picture, if it's fixed (desktop only). `most`: its maximum height, unless
 * rows would become too low.
 * @type {(map: PassData, width: number, room?: number, most?: number) => Size}
 */
function sizeOf(map, width, room = 0, most = Infinity) {
  const tokens = map.labels.length;
  if (width < PHONE_BELOW) {
    const along = PHONE_WORDS + Math.min(Math.max(map.layers * PHONE_LAYER, 200), 460),
      height = along + 16 + (map.next ? 24 + BARS_ON_A_PHONE * BAR_HEIGHT : 0),
      pitch = (width - PHONE_MARGIN) / tokens;
    return { width, height, phone: true, pitch, first: PHONE_MARGIN, along };
  }
  const rows = Math.min(ROWS_HEIGHT, most - TOP - BOTTOM),
    pitch = room
      ? Math.max(room - TOP - BOTTOM, LEAST_ROWS) / tokens
      : Math.min(Math.max(rows / tokens, LOWEST_ROW), HIGHEST_ROW),
    height = TOP + Math.max(pitch * tokens, LEAST_ROWS) + BOTTOM,
    along = width - (map.next ? WAY_OUT + nextWidth(width) : 0);
  return { width, height, phone: false, pitch, first: TOP, along };
}

const nextWidth = (/** @type {number} */ width) =>
  Math.min(Math.max(width * 0.2, NEXT_WIDTH[0]), NEXT_WIDTH[1]);

/**
 * A box with start and length (`from`, `long`) along the layers, and (`at`, `wide`) across them.
 * @type {(size: Size, from: number, long: number, at: number, wide: number) =>
 *         { x: number, y: number, w: number, h: number }}
 */
const box = ({ phone }, from, long, at, wide) =>
  phone ? { x: at, y: from, w: wide, h: long } : { x: from, y: at, w: long, h: wide };

/** @type {(size: Size, along: number, across: number) => [number, number]} like `box`, for a point */
const point = ({ phone }, along, across) => (phone ? [across, along] : [along, across]);

/** @type {(size: Size, token: number) => number} the middle of a token's row or column */
const middleOf = (size, token) => size.first + (token + 0.5) * size.pitch;

/** @type {(size: Size) => number} the space for the words, along the layers */
const wordsOf = (size) =>
  size.phone ? PHONE_WORDS : Math.min(Math.max(size.width * 0.11, WORDS[0]), WORDS[1]);

/**
 * The start and length of each layer; an open layer takes up most of the space.
 * @type {(place: Place, layers: number, size: Size) => [number, number][]}
 */
function slabs(place, layers, size) {
  const left = wordsOf(size) + (size.phone ? 4 : STATION_GAP),
    width = size.along - left;
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
    // on a desktop, skip one cell so that the values are near the weights
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

/** @type {(place: Place) => boolean} whether a head or one of its matrices is open */
const inHead = ({ level }) => level === "head" || level === "matrix";

/**
 * All items at a place. A new item starts its animation at its origin.
 * @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]}
 */
function scene(map, opened, place, size) {
  const inside = inHead(place);
  const items = [...wholeItems(map, place, size, inside ? 0 : 1)];
  if (place.level === "layer") items.push(...layerItems(map, opened, place, size));
  if (inside) items.push(...headItems(map, opened, place, size));
  return items;
}

/** @type {(map: PassData, place: Place, size: Size, alpha: number) => Item[]} */
function wholeItems(map, place, size, alpha) {
  const rows = size.pitch * map.labels.length;
  const words = map.labels.map((text, token) => ({
    ...{ name: `word ${token}`, kind: "word", token, text, alpha, rank: 3 },
    ...box(size, 0, wordsOf(size), size.first + token * size.pitch, size.pitch),
  }));
  const layers = slabs(place, map.layers, size).map(([from, long], layer) => ({
    ...{ name: `slab ${layer}`, kind: "slab", layer, alpha, rank: 1 },
    ...box(size, from, long, size.first, rows),
  }));
  return [...words, ...layers, ...nextItems(map, size, alpha)];
}

/** @type {(map: PassData, size: Size, alpha: number) => Item[]} */
function nextItems(map, size, alpha) {
  const bars = size.phone ? BARS_ON_A_PHONE : BARS,
    left = size.phone ? 4 : size.along + WAY_OUT,
    top = size.phone ? size.along + 40 : size.first;
  return (map.next ?? []).slice(0, bars).map((text, choice) => ({
    ...{ name: `bar ${choice}`, kind: "bar", choice, text, alpha, rank: 2 },
    ...{ x: left, y: top + choice * BAR_HEIGHT, w: size.width - left - 4, h: BAR_HEIGHT },
  }));
}

/** @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]} */
function layerItems(map, opened, place, size) {
  const [from, long] = slabs(place, map.layers, size)[place.layer],
    rows = size.pitch * map.labels.length,
    high = Math.max(rows, size.phone ? 0 : LEAST_ROWS),
    origin = `slab ${place.layer}`;
  const card = box(size, from + long * 0.3, long * 0.44, size.first + 4, high - 8);
  const tiles = tileGrid(map.heads, card.x, card.y, card.w, card.h);
  const tile = { kind: "tile", layer: place.layer, alpha: 1, rank: 4, origin };
  /** @type {(Item & { origin?: string })[]} */
  const items = tiles.map(([x, y, side], head) => ({
    ...{ ...tile, name: `tile ${place.layer} ${head}`, head, x, y, w: side, h: side },
  }));
  const part = { layer: place.layer, head: place.head, alpha: 1, rank: 2, origin };
  items.push({
    ...{ ...part, name: `arcs ${place.layer}`, kind: "arcs" },
    ...box(size, from + 6, long * 0.3 - 16, size.first, rows),
  });
  if (opened?.layer === place.layer) {
    items.push({
      ...{ ...part, name: `neurons ${place.layer}`, kind: "neurons" },
      ...box(size, from + long * 0.76, long * 0.24 - 8, size.first, rows),
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

/** @type {(tensor: string) => string[]} the inputs of a matrix */
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
