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
 * What serving/pass_picture.py packs: the header's fields, and `numbers` by the tensors' names.
 * @typedef {{
 *   title: string, model: string, picture: string, labels: string[], layers: number, heads: number, causal: boolean,
 *   headSize: number, guesses: string[], next: string[] | null, levels: number, largest: number[],
 *   says: string, about?: About, numbers: Record<string, Numbers>, body: Uint8Array<ArrayBuffer>,
 *   off: string[], decoder: boolean, away: Record<string, string> | null, place: (Place & { told: number }) | null,
 *   play: Played | null, temperature?: number, topK?: number, lookOnly?: boolean,
 *   follow?: boolean,
 *   largestAdded: number,
 * }} PassData
 */
/**
 * A layer and a head that are open. `missing`: why the head's own numbers are not there.
 * @typedef {{
 *   says: string, picture: string, layer: number, head: number, scale: number, captions: Caption[],
 *   numbers: Record<string, Numbers>, missing?: string,
 * }} Opened
 */
/**
 * An item of the picture. `alpha`: 0 is not there. `rank`: what is drawn later lies above.
 * @typedef {{
 *   name: string, kind: string, x: number, y: number, w: number, h: number, alpha: number,
 *   layer?: number, head?: number, token?: number, text?: string, share?: number,
 *   numbers?: Numbers, tensor?: string, rank: number,
 * }} Item
 */
/**
 * The picture's size in CSS pixels. On a desk layers go to the right and tokens lie below each other;
 * on a phone layers go down and tokens lie beside each other. `pitch`: from one token to the next;
 * `first`: where the first begins; `along`: how far it is from the text to the next token.
 * @typedef {{
 *   width: number, height: number, phone: boolean, pitch: number, first: number, along: number,
 * }} Size
 */

const TOP = 58,
  ROWS_HEIGHT = 372,
  LEAST_ROWS = 120,
  LOWEST_ROW = 5.5,
  HIGHEST_ROW = 24,
  BELOW = 96,
  STRIP_CELL = 3,
  STATION_GAP = 14,
  PREDICTIONS = 176,
  BARS = 10,
  LABELS = 84, // beside the first matrix of a row
  PHONE_BELOW = 600,
  BARS_ON_A_PHONE = 5,
  BESIDE = 84, // the slabs of a phone: what the model would say after each
  OPEN_SHARE = 0.78;

// The matrices of an open head in the order of the computation: name, what it is called, and what
// it was made of.
const STEPS = [
  { tensor: "q", title: "queries q", from: "from x by W_Q" },
  { tensor: "k", title: "keys k", from: "from x by W_K" },
  { tensor: "scores", title: "scores", from: "q · kᵀ" },
  { tensor: "scaled", title: "masked, scaled", from: "scores ÷ √d" },
  { tensor: "weights", title: "weights", from: "softmax of each row" },
  { tensor: "v", title: "values v", from: "from x by W_V" },
  { tensor: "context", title: "context", from: "weights · v" },
  { tensor: "added", title: "added to the stream", from: "context · W_O" },
];

/** @type {(map: PassData, tensor: string) => string} what a matrix of an open head was made of */
function madeFrom({ off }, tensor) {
  if (tensor === "scaled" && off.includes("scale")) return "scores, not divided";
  return STEPS.find((step) => step.tensor === tensor)?.from ?? "";
}

/**
 * `room`: how high the picture shall be, where that is given; on a desk only. `most`: how high it may
 * be, as long as no row becomes too low for that.
 * @type {(map: PassData, width: number, room?: number, most?: number) => Size}
 */
function sizeOf(map, width, room = 0, most = Infinity) {
  const tokens = map.labels.length;
  if (width < PHONE_BELOW) {
    const layers = Math.min(Math.max(map.layers * 13, 200), 420),
      along = 64 + 2 * STATION_GAP + embeddingParts(map).length * (16 * STRIP_CELL + 4) + layers;
    const height = along + STATION_GAP + (map.next ? BARS_ON_A_PHONE * 26 : 16 * STRIP_CELL) + 8;
    return { width, height, phone: true, pitch: (width - BESIDE) / tokens, first: 2, along };
  }
  if (room) {
    const rows = Math.max(room - TOP - BELOW, LEAST_ROWS);
    const height = TOP + rows + BELOW;
    return { width, height, phone: false, pitch: rows / tokens, first: TOP, along: width };
  }
  const all = Math.min(ROWS_HEIGHT, most - TOP - BELOW);
  const pitch = Math.min(Math.max(all / tokens, LOWEST_ROW), HIGHEST_ROW);
  const rows = Math.max(pitch * tokens, 180);
  return { width, height: TOP + rows + BELOW, phone: false, pitch, first: TOP, along: width };
}

/**
 * A box that lies `from` and `long` in the direction of the layers, and `at` and `wide` across.
 * @type {(size: Size, from: number, long: number, at: number, wide: number) =>
 *         { x: number, y: number, w: number, h: number }}
 */
const box = ({ phone }, from, long, at, wide) =>
  phone ? { x: at, y: from, w: wide, h: long } : { x: from, y: at, w: long, h: wide };

/** @type {(size: Size, token: number) => number} the middle of a token's row, or column */
const middleOf = (size, token) => size.first + (token + 0.5) * size.pitch;

/**
 * Where the stations lie: tokens, embedding, layers, what comes next.
 * @type {(size: Size, strips: number, predicts: boolean) => Record<string, [number, number]>}
 */
function stations(size, strips, predicts) {
  const chips = size.phone ? 64 : Math.min(Math.max(size.width * 0.11, 56), 120);
  const embedding = strips * (16 * STRIP_CELL + 4);
  const first = chips + STATION_GAP + embedding + STATION_GAP;
  const last = predicts ? Math.min(PREDICTIONS, size.width * 0.2) : 16 * STRIP_CELL + 4;
  const end = size.phone ? size.along + STATION_GAP : size.along - last;
  return {
    tokens: [0, chips],
    embedding: [chips + STATION_GAP, embedding],
    layers: [first, end - STATION_GAP - first],
    end: [end, last],
  };
}

/**
 * Where each layer's slab begins, and how long it is; an open one takes most of the room.
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

/** @type {(place: Place) => boolean} whether a head or a matrix of it is open, not the whole or a layer */
const inHead = ({ level }) => level === "head" || level === "matrix";

/**
 * Everything that is there at a place, with where each item comes from if it is new.
 * @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]}
 */
function scene(map, opened, place, size) {
  const inside = inHead(place);
  const items = [
    ...stationItems(map, place, size, inside ? 0 : 1),
    ...slabItems(map, place, size, inside ? 0 : 1),
  ];
  if (place.level === "layer") items.push(...layerItems(map, opened, place, size));
  if (inside) items.push(...headItems(map, opened, place, size));
  return items;
}

/** @type {(map: PassData, place: Place, size: Size, alpha: number) => Item[]} */
function stationItems(map, place, size, alpha) {
  const parts = embeddingParts(map),
    at = stations(size, parts.length, !!map.next),
    rows = size.pitch * map.labels.length,
    strip = 16 * STRIP_CELL;
  /** @type {Item[]} */
  const items = map.labels.map((text, token) => ({
    ...{ name: `chip ${token}`, kind: "chip", token, text, alpha, rank: 3 },
    ...box(size, ...at.tokens, size.first + token * size.pitch, size.pitch),
  }));
  parts.forEach(({ tensor, title }, part) =>
    items.push({
      ...{ name: tensor, kind: "strip", tensor, text: title, alpha, rank: 2 },
      ...box(size, at.embedding[0] + part * (strip + 4), strip, size.first, rows),
    }),
  );
  if (map.next) return [...items, ...nextItems(map, size, at.end, alpha)];
  items.push({
    ...{ name: "leaving", kind: "strip", tensor: "leaving", text: "out", alpha, rank: 2 },
    ...box(size, at.end[0], strip, size.first, rows),
  });
  return items;
}

/** @type {(map: PassData, size: Size, station: [number, number], alpha: number) => Item[]} */
function nextItems(map, size, [from, long], alpha) {
  const bars = size.phone ? BARS_ON_A_PHONE : BARS;
  const high = size.phone ? 26 : Math.min((size.height - size.first - 8) / bars, 34);
  return (map.next ?? []).slice(0, bars).map((text, choice) => ({
    ...{ name: `bar ${choice}`, kind: "bar", share: choice, text, alpha, rank: 2 },
    ...(size.phone
      ? { x: 4, y: from + choice * high, w: size.width - 8, h: high - 3 }
      : { x: from + 10, y: size.first + choice * high, w: long - 10, h: high - 4 }),
  }));
}

/** @type {(map: PassData, place: Place, size: Size, alpha: number) => Item[]} */
function slabItems(map, place, size, alpha) {
  const at = stations(size, embeddingParts(map).length, !!map.next),
    rows = size.pitch * map.labels.length;
  return slabs(place, map.layers, at.layers).flatMap(([from, long], layer) => {
    const guess = {
      ...{ name: `guess ${layer}`, kind: "guess", layer, text: map.guesses[layer + 1], rank: 3 },
      alpha: map.guesses.length ? alpha : 0,
    };
    return [
      {
        ...{ name: `slab ${layer}`, kind: "slab", layer, alpha, rank: 1 },
        ...box(size, from, long, size.first, rows),
      },
      { ...guess, ...box(size, from, long, size.first + rows, size.phone ? BESIDE : BELOW) },
    ];
  });
}

/** @type {(map: PassData, opened: Opened | null, place: Place, size: Size) => Item[]} */
function layerItems(map, opened, place, size) {
  const at = stations(size, embeddingParts(map).length, !!map.next),
    [from, long] = slabs(place, map.layers, at.layers)[place.layer],
    rows = size.pitch * map.labels.length,
    origin = `slab ${place.layer}`;
  const card = box(size, from + long * 0.3, long * 0.44, size.first + 4, rows - 8);
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
