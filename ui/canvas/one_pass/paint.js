// @ts-check
// How each item of the picture of one pass is painted, on the page's canvas or into a file.

const SMALL = "11px sans-serif",
  PLAIN = "12px sans-serif",
  STRONG = "600 12px sans-serif",
  LEAST_LETTERS = 9, // a row must be this high for its text
  LEAST_DIGITS = 34, // and a cell this wide for its number
  THINNEST = 1.2,
  LIGHT = 0.04; // of the largest weight: a fainter arc is not drawn
const ATTENTION_HUE = rgb(OKABE_ITO.blue),
  FEED_FORWARD_HUE = rgb(OKABE_ITO.orange);

/**
 * What the painters need beside an item: the data, what is pointed at, and the theme.
 * @typedef {{
 *   map: PassData, opened: Opened | null, place: Place, size: Size, dark: boolean, ink: string,
 *   items: Map<string, Item>, frames: [string, number, number, number, number][],
 *   weight: (layer: number, head: number, row: number, column: number) => number,
 *   image: (name: string, numbers: Numbers, tone: Tone) => HTMLCanvasElement,
 *   probabilities: number[],
 * }} Scene
 */
/** @typedef {(value: number) => Rgb} Tone */

/** @type {(context: Pen, scene: Scene) => void} */
function paint(context, scene) {
  const items = [...scene.items.values()].sort((a, b) => a.rank - b.rank);
  context.textBaseline = "middle";
  for (const item of items.filter(({ kind }) => kind === "slab")) paintSlab(context, scene, item);
  paintRibbons(context, scene);
  for (const item of items) {
    if (item.kind === "slab" || item.alpha <= 0 || item.w < 0.5) continue;
    context.globalAlpha = item.alpha;
    PAINTERS[item.kind](context, scene, item);
    context.globalAlpha = 1;
  }
  paintFrames(context, scene);
}

/** @type {Record<string, (context: Pen, scene: Scene, item: Item) => void>} */
const PAINTERS = {
  chip: paintChip,
  strip: paintStrip,
  guess: paintGuess,
  bar: paintBarOfNext,
  tile: paintTile,
  arcs: paintArcs,
  neurons: paintNeurons,
  matrix: paintMatrix,
};

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintChip(context, { place, size, ink }, { x, y, w, h, token = 0, text = "" }) {
  const chosen = token === place.token;
  if (chosen) {
    context.fillStyle = OKABE_ITO.sky;
    context.globalAlpha *= 0.35;
    context.fillRect(x, y + 0.5, w, h - 1);
    context.globalAlpha /= 0.35;
  }
  if (size.rowHeight < LEAST_LETTERS && !chosen) return;
  context.font = chosen ? STRONG : SMALL;
  context.fillStyle = ink;
  context.textAlign = "right";
  context.fillText(shorten(context, text, w - 6), x + w - 4, y + h / 2);
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintStrip(context, scene, { x, y, w, h, tensor = "", text = "" }) {
  const numbers = scene.map.numbers[tensor];
  const largest = extent(numbers.values);
  const tone = (/** @type {number} */ value) => divergingNumbers(value / largest, scene.dark);
  context.imageSmoothingEnabled = false;
  context.drawImage(scene.image(tensor, numbers, tone), x, y, w, h);
  heading(context, scene, text, x + w / 2, y - 30, w + 20);
}

/** @type {(context: Pen, scene: Scene, text: string, x: number, y: number, room: number) => void} */
function heading(context, { ink }, text, x, y, room) {
  context.font = SMALL;
  context.fillStyle = ink;
  context.textAlign = "center";
  context.fillText(shorten(context, text, room), x, y);
}

// A layer: a tint for every token, left by what attention adds, right by what the feed-forward adds.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintSlab(context, scene, item) {
  const { map, place, size, ink } = scene,
    { x, y, w, h, alpha, layer = 0 } = item;
  if (alpha <= 0) return;
  const open = place.level === "layer" && layer === place.layer,
    gap = w > 12 ? 2 : 0.5;
  for (const [tensor, hue, from] of /** @type {const} */ ([
    ["attention_norms", ATTENTION_HUE, 0],
    ["mlp_norms", FEED_FORWARD_HUE, 0.5],
  ])) {
    const { values } = map.numbers[tensor],
      left = x + gap / 2 + from * (w - gap),
      wide = (w - gap) / 2;
    context.fillStyle = css(hue);
    for (let token = 0; token < map.labels.length; token++) {
      const share = added(scene, values[layer * map.labels.length + token]);
      context.globalAlpha = alpha * (open ? 0.05 + 0.1 * share : 0.08 + 0.72 * share);
      context.fillRect(left, y + token * size.rowHeight, wide, size.rowHeight - 0.5);
    }
    context.globalAlpha = alpha * 0.9;
    context.fillRect(left, y - 16, wide, 5);
  }
  context.globalAlpha = alpha;
  if (w > 15 || layer % 5 === 0) heading(context, scene, String(layer), x + w / 2, y - 26, 40);
  if (layer === place.layer && alpha > 0.5) {
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y - 18, w - 1, h + 20);
  }
  context.globalAlpha = 1;
}

// How much a layer adds, from 0 to 1 on a logarithmic scale: a first token's vectors are often a
// hundred times as long as the others.
/** @type {(scene: Scene, norm: number) => number} */
function added({ map }, norm) {
  return Math.log1p(norm) / Math.log1p(map.largestAdded);
}

// One ribbon a token through all layers, as wide as its vector is long (logarithm).
/** @type {(context: Pen, scene: Scene) => void} */
function paintRibbons(context, scene) {
  const { map, place, size, ink, items } = scene;
  const slab = (/** @type {number} */ layer) => /** @type {Item} */ (items.get(`slab ${layer}`));
  const tokens = map.labels.length,
    alpha = slab(0).alpha;
  if (alpha <= 0) return;
  const norms = map.numbers.state_norms.values,
    top = Math.log1p(extent(norms));
  const wide = (/** @type {number} */ state, /** @type {number} */ token) => {
    const share = Math.log1p(norms[state * tokens + token]) / top;
    return THINNEST + share * share * (size.rowHeight * 0.62 - THINNEST);
  };
  for (let token = 0; token < tokens; token++) {
    const middle = rowMiddle(size, token);
    /** @type {[number, number][]} */
    const points = [[slab(0).x - STATION_GAP, wide(0, token)]];
    for (let layer = 0; layer < map.layers; layer++) {
      const { x, w } = slab(layer);
      points.push([x, wide(layer, token)], [x + w, wide(layer + 1, token)]);
    }
    points.push([points[points.length - 1][0] + STATION_GAP, points[points.length - 1][1]]);
    context.fillStyle = token === place.token ? OKABE_ITO.sky : ink;
    context.globalAlpha = alpha * (token === place.token ? 0.95 : 0.3);
    context.beginPath();
    points.forEach(([x, size], i) =>
      i ? context.lineTo(x, middle - size / 2) : context.moveTo(x, middle - size / 2),
    );
    for (const [x, size] of points.reverse()) context.lineTo(x, middle + size / 2);
    context.closePath();
    context.fill();
  }
  context.globalAlpha = 1;
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintGuess(context, { map, ink }, { x, y, w, layer = 0, text = "" }) {
  if (w < 9 && layer % 2) return;
  const sure = map.numbers.guess_probabilities.values[layer + 1];
  context.save();
  context.translate(x + w / 2, y + 6);
  context.rotate(Math.PI / 3);
  context.font = SMALL;
  context.textAlign = "left";
  context.fillStyle = ink;
  context.globalAlpha *= 0.45 + 0.55 * sure;
  context.fillText(shorten(context, text, BELOW - 16), 0, 0);
  context.restore();
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintBarOfNext(context, scene, { x, y, w, h, share: choice = 0, text = "" }) {
  const probability = scene.probabilities[choice] ?? 0;
  context.fillStyle = OKABE_ITO.blue;
  context.fillRect(x, y + h - 7, Math.max(w * probability, 1), 5);
  context.font = choice ? SMALL : STRONG;
  context.fillStyle = scene.ink;
  context.textAlign = "left";
  const said = number(probability, 3);
  context.fillText(shorten(context, text, w - 50), x, y + h / 2 - 6);
  context.textAlign = "right";
  context.fillText(said, x + w, y + h / 2 - 6);
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintTile(context, scene, { x, y, w, h, layer = 0, head = 0 }) {
  const { map, place, ink } = scene,
    tokens = map.labels.length;
  const values = new Float32Array(tokens * tokens);
  const name = `tile ${layer} ${head}`;
  const picture = scene.image(name, { shape: [tokens, tokens], values }, colourNumbers);
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, x, y, w, h);
  const chosen = head === place.head;
  context.strokeStyle = chosen ? OKABE_ITO.vermillion : ink;
  context.globalAlpha *= chosen ? 1 : 0.25;
  context.lineWidth = chosen ? 2.5 : 1;
  context.strokeRect(x, y, w, h);
}

// The weights of the chosen head as arcs from the token looked at (left) to the one that looks.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintArcs(context, scene, { x, w, layer = 0, head = 0 }) {
  const { map, place, size } = scene,
    tokens = map.labels.length,
    strength = context.globalAlpha;
  context.strokeStyle = headColour(head);
  for (let row = 0; row < tokens; row++) {
    for (let column = 0; column < (map.causal ? row + 1 : tokens); column++) {
      const weight = scene.weight(layer, head, row, column);
      if (weight < LIGHT) continue;
      const own = row === place.token;
      context.globalAlpha = strength * weight * (own ? 1 : 0.35);
      context.lineWidth = own ? 2.5 : 1;
      const [from, to] = [rowMiddle(size, column), rowMiddle(size, row)];
      context.beginPath();
      context.moveTo(x, from);
      context.bezierCurveTo(x + w * 0.6, from, x + w * 0.4, to, x + w, to);
      context.stroke();
    }
  }
}

// The strongest neurons of each token: a cell each, by what they write.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintNeurons(context, scene, { x, y, w }) {
  const { opened, size } = scene;
  if (!opened) return;
  const { written, activations } = opened.numbers,
    largest = extent(written.values),
    each = w / written.shape[1];
  written.values.forEach((value, at) => {
    const token = Math.floor(at / written.shape[1]),
      place = at % written.shape[1];
    const sign = activations.values[at] < 0 ? -1 : 1;
    context.fillStyle = diverging((sign * Math.log1p(value)) / Math.log1p(largest), scene.dark);
    context.fillRect(
      x + place * each,
      y + token * size.rowHeight + 1,
      each - 1.5,
      size.rowHeight - 2,
    );
  });
}

/** @type {(tensor: string, scene: Scene) => Tone} */
function toneOf(tensor, { opened, dark }) {
  if (tensor === "weights") return (value) => colourNumbers(Math.sqrt(value));
  const largest = extent(opened?.numbers[tensor].values ?? new Float32Array([1]));
  return (value) => divergingNumbers(value / largest, dark);
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintMatrix(context, scene, { x, y, w, h, tensor = "", text = "" }) {
  const numbers = scene.opened?.numbers[tensor];
  if (!numbers) return;
  const tone = toneOf(tensor, scene);
  context.imageSmoothingEnabled = false;
  context.drawImage(scene.image(`step ${tensor}`, numbers, tone), x, y, w, h);
  context.strokeStyle = scene.ink;
  context.lineWidth = 0.5;
  context.strokeRect(x, y, w, h);
  const [rows, columns] = numbers.shape,
    read = scene.place.level === "matrix" && tensor === scene.place.matrix;
  if (read || (scene.place.level === "head" && ["q", "v"].includes(tensor)))
    paintTokens(context, scene, { x, y, w, h }, read && columns === rows);
  const above = read && columns === rows ? 26 : 9;
  heading(context, scene, `${text} (${rows}, ${columns})`, x + w / 2, y - above, w + 30);
  const from = STEPS.find((step) => step.tensor === tensor)?.from ?? "";
  heading(context, scene, from, x + w / 2, y + h + 10, w + 16);
  if (w / columns < LEAST_DIGITS || h / rows < 12) return;
  context.font = SMALL;
  context.textAlign = "center";
  numbers.values.forEach((value, at) => {
    const masked = scene.map.causal && tensor === "weights" && at % columns > Math.floor(at / columns);
    if (masked || value === -Infinity) return;
    context.fillStyle = readable(tone(value));
    context.fillText(
      number(value, 2),
      x + ((at % columns) + 0.5) * (w / columns),
      y + (Math.floor(at / columns) + 0.5) * (h / rows),
    );
  });
}

// The tokens beside the rows of a matrix, and above its columns where these are tokens too.
/** @type {(context: Pen, scene: Scene, box: { x: number, y: number, w: number, h: number }, across: boolean) => void} */
function paintTokens(context, { map, size, ink, place }, { x, y, w, h }, across) {
  if (size.phone) return;
  const tokens = map.labels.length;
  context.fillStyle = ink;
  map.labels.forEach((label, token) => {
    if (h / tokens >= LEAST_LETTERS || token === place.row) {
      context.font = token === place.row ? STRONG : SMALL;
      context.textAlign = "right";
      context.fillText(shorten(context, label, LABELS - 10), x - 5, y + ((token + 0.5) * h) / tokens);
    }
    if (across && w / tokens >= LEAST_DIGITS) {
      context.font = token === place.column ? STRONG : SMALL;
      context.textAlign = "center";
      context.fillText(shorten(context, label, w / tokens - 4), x + ((token + 0.5) * w) / tokens, y - 9);
    }
  });
}

// What is pointed at, and what it was computed from.
/** @type {(context: Pen, scene: Scene) => void} */
function paintFrames(context, scene) {
  scene.frames.forEach(([tensor, row, column, rows, columns], i) => {
    const item = scene.items.get(`step ${tensor}`),
      numbers = scene.opened?.numbers[tensor];
    if (!item || !numbers) return;
    const cell = [item.w / numbers.shape[1], item.h / numbers.shape[0]];
    context.strokeStyle = i ? OKABE_ITO.sky : OKABE_ITO.vermillion;
    context.lineWidth = 2.5;
    context.strokeRect(
      item.x + column * cell[0],
      item.y + row * cell[1],
      columns * cell[0],
      rows * cell[1],
    );
  });
}

/** @type {(values: Float32Array) => number} the largest size of a finite number, at least a little */
function extent(values) {
  let largest = 1e-12;
  for (const value of values) if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  return largest;
}
