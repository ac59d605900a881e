// @ts-check
// How each item of the picture of one pass is painted, on the page's canvas or into a file.

const LETTERS = 12, // rows are this high where each has its text
  LEAST_DIGITS = 34, // and a cell this wide for its number
  THINNEST = 1.2,
  LIGHT = 0.04; // of the largest weight: a fainter arc is not drawn
// What the tensors of this picture are, where they have colours of their own on all pages.
/** @type {Record<string, string>} */
const HUES = {
  position: QUANTITIES.positions,
  leaving: QUANTITIES.stream,
  q: QUANTITIES.queries,
  k: QUANTITIES.keys,
  v: QUANTITIES.values,
  added: QUANTITIES.attention,
};
const MARK = 8;

/**
 * What the painters need beside an item: the data, what is pointed at, and the theme.
 * @typedef {{
 *   map: PassData, opened: Opened | null, place: Place, size: Size, dark: boolean, ink: string,
 *   items: Map<string, Item>, frames: [string, number, number, number, number][],
 *   weight: (layer: number, head: number, row: number, column: number) => number,
 *   image: (name: string, numbers: Numbers, tone: (value: number) => number[]) => HTMLCanvasElement,
 *   writing: Writing | null,
 *   probabilities: number[], ghosts: number[], norms: Float32Array, ghostNorms: Float32Array | null,
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
  paintWriting(context, scene);
  const { opened, place, size } = scene;
  if (opened?.missing && ["head", "matrix"].includes(place.level))
    heading(context, scene, opened.missing, size.width / 2, size.first + 30, size.width);
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

/**
 * Whether the text of a token is written: of each, or where rows are low of every second, third …,
 * and that of the chosen one, which is written in any case, has its neighbours give way.
 * @type {(pitch: number, token: number, chosen: number) => boolean}
 */
function isNamed(pitch, token, chosen) {
  const every = Math.ceil(LETTERS / pitch);
  return token === chosen || (token % every === 0 && Math.abs(token - chosen) >= every);
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintChip(context, { place, size, ink, writing }, { x, y, w, h, token = 0, text = "" }) {
  if (writing && token >= writing.rows) return;
  const chosen = token === place.token;
  if (chosen) {
    context.fillStyle = QUANTITIES.stream;
    context.globalAlpha *= 0.35;
    context.fillRect(x, y, w, h);
    context.globalAlpha /= 0.35;
  }
  if (!isNamed(size.pitch, token, place.token)) return;
  context.font = chosen ? STRONG_LABEL : SMALL_LABEL;
  context.fillStyle = ink;
  context.textAlign = "right";
  context.save();
  context.translate(x + w - 4, y + h / 2);
  if (size.phone) {
    context.translate(4 - w / 2, h / 2 - 4);
    context.rotate(Math.PI / 2);
  }
  context.fillText(shorten(context, text, (size.phone ? h : w) - 6), 0, 0);
  context.restore();
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintStrip(context, scene, { x, y, w, h, tensor = "", text = "" }) {
  const numbers = scene.map.numbers[tensor],
    largest = extent(numbers.values),
    tone = (/** @type {number} */ value) => divergingNumbers(value / largest, scene.dark);
  context.imageSmoothingEnabled = false;
  context.save();
  context.translate(x, y);
  const { size, writing } = scene;
  if (writing) {
    const there = writing.rows * size.pitch;
    context.beginPath();
    context.rect(0, 0, size.phone ? there : w, size.phone ? h : there);
    context.clip();
  }
  // on a phone a token is a column
  if (size.phone) context.transform(0, 1, 1, 0, 0, 0);
  const [long, high] = size.phone ? [h, w] : [w, h];
  context.drawImage(scene.image(tensor, numbers, tone), 0, 0, long, high);
  context.restore();
  if (size.phone) beside(context, scene, text, x + w + 6, y + h / 2, HUES[tensor]);
  else heading(context, scene, text, x + w / 2, y - 30, w + 20, HUES[tensor]);
}

/** @type {(context: Pen, scene: Scene, text: string, x: number, y: number, hue?: string) => void} */
function beside(context, { ink }, text, x, y, hue) {
  context.font = SMALL_LABEL;
  context.textAlign = "left";
  write(context, ink, shorten(context, text, BESIDE - 8 - (hue ? MARK + 4 : 0)), x, y, hue);
}

/** @type {(context: Pen, scene: Scene, text: string, x: number, y: number, room: number, hue?: string) => void} */
function heading(context, { ink }, text, x, y, room, hue) {
  context.font = SMALL_LABEL;
  context.textAlign = "left";
  const shown = shorten(context, text, room),
    width = context.measureText(shown).width + (hue ? MARK + 4 : 0);
  write(context, ink, shown, x - width / 2, y, hue);
}

// A text from `x` on, behind a square in the colour of what it names, if that has one.
/** @type {(context: Pen, ink: string, text: string, x: number, y: number, hue?: string) => void} */
function write(context, ink, text, x, y, hue) {
  if (hue) {
    context.fillStyle = hue;
    context.fillRect(x, y - MARK / 2, MARK, MARK);
  }
  context.fillStyle = ink;
  context.fillText(text, hue ? x + MARK + 4 : x, y);
}

// A layer: a tint for every token, first what attention adds, then what the feed-forward adds.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintSlab(context, scene, item) {
  const { map, place, size, ink } = scene,
    { x, y, w, h, alpha, layer = 0 } = item;
  if (alpha <= 0) return;
  const open = place.level === "layer" && layer === place.layer,
    [from, long] = size.phone ? [y, h] : [x, w],
    gap = long > 12 ? 2 : 0.5,
    tokens = map.labels.length;
  const strength = (/** @type {number} */ norm) =>
    open ? 0.05 + 0.1 * added(scene, norm) : 0.08 + 0.72 * added(scene, norm);
  const fill = (/** @type {[number, number, number, number]} */ ...place) => {
    const { x, y, w, h } = box(size, ...place);
    context.fillRect(x, y, w, h);
  };
  for (const [tensor, hue, part] of /** @type {const} */ ([
    ["attention_norms", QUANTITIES.attention, 0],
    ["mlp_norms", QUANTITIES["feed-forward"], 0.5],
  ])) {
    const begin = from + gap / 2 + part * (long - gap),
      half = (long - gap) / 2;
    context.globalAlpha = alpha;
    if (writes(scene)) {
      context.fillStyle = hue;
      for (let token = 0; token < tokens; token++) {
        const there = computed(scene, token, (layer + part) / map.layers);
        context.globalAlpha =
          alpha * there * strength(map.numbers[tensor].values[layer * tokens + token]);
        fill(begin, half, size.first + token * size.pitch, size.pitch);
      }
    } else {
      // one small picture is drawn more quickly than a rectangle for every token
      const values = map.numbers[tensor].values.subarray(layer * tokens, (layer + 1) * tokens);
      const tone = (/** @type {number} */ norm) => [...rgb(hue), 255 * strength(norm)];
      const name = `slab ${tensor} ${layer} ${open} ${size.phone}`;
      const shape = size.phone ? [1, tokens] : [tokens, 1];
      const { x, y, w, h } = box(size, begin, half, size.first, tokens * size.pitch);
      context.imageSmoothingEnabled = false;
      context.drawImage(scene.image(name, { shape, values }, tone), x, y, w, h);
    }
    context.fillStyle = hue;
    context.globalAlpha = alpha * 0.9;
    if (!size.phone) fill(begin, half, size.first - 16, 5);
  }
  context.globalAlpha = alpha;
  if (!size.phone && (w > 15 || layer % 5 === 0))
    heading(context, scene, String(layer), x + w / 2, y - 26, 40);
  if (!size.phone && layer === 0) heading(context, scene, "layer", x + w / 2, y - 42, 60);
  if (layer === place.layer && alpha > 0.5) {
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y - (size.phone ? 0 : 18), w - 1, h + (size.phone ? 0 : 20));
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
  const { map, place, size, dark, ink, items } = scene;
  const slab = (/** @type {number} */ layer) => /** @type {Item} */ (items.get(`slab ${layer}`));
  const tokens = map.labels.length,
    alpha = slab(0).alpha;
  if (alpha <= 0) return;
  const { norms, ghostNorms } = scene,
    longest = Math.log1p(Math.max(extent(norms), ghostNorms ? extent(ghostNorms) : 0));
  const wide = (/** @type {number} */ state, /** @type {number} */ token, lengths = norms) => {
    const share = Math.log1p(lengths[state * tokens + token]) / longest;
    return THINNEST + share * share * (size.pitch * 0.62 - THINNEST);
  };
  const go = (
    /** @type {boolean} */ first,
    /** @type {number} */ along,
    /** @type {number} */ across,
  ) => {
    const [x, y] = size.phone ? [across, along] : [along, across];
    if (first) context.moveTo(x, y);
    else context.lineTo(x, y);
  };
  const trace = (/** @type {number} */ token, lengths = norms) => {
    const middle = middleOf(size, token);
    /** @type {[number, number][]} */
    const points = [];
    for (let layer = 0; layer < map.layers; layer++) {
      const { x, y, w, h } = slab(layer),
        [from, long] = size.phone ? [y, h] : [x, w];
      if (!layer) points.push([from - STATION_GAP, wide(0, token, lengths)]);
      points.push([from, wide(layer, token, lengths)]);
      points.push([from + long, wide(layer + 1, token, lengths)]);
    }
    const [end, last] = points[points.length - 1];
    points.push([end + STATION_GAP, last]);
    context.beginPath();
    points.forEach(([along, width], i) => go(!i, along, middle - width / 2));
    for (const [along, width] of points.reverse()) go(false, along, middle + width / 2);
    context.closePath();
  };
  const { writing } = scene;
  for (let token = 0; token < tokens; token++) {
    const strength = computed(scene, token, -1);
    if (!strength) continue;
    const chosen = token === place.token;
    context.save();
    if (writing && token >= writing.first && writing.share < 1) clipToFront(context, scene);
    context.fillStyle = chosen ? ink : QUANTITIES.stream;
    context.globalAlpha = alpha * strength * (chosen ? 0.95 : dark ? 0.8 : 0.5);
    trace(token);
    context.fill();
    context.restore();
    if (!(ghostNorms && ghostNorms[token] >= 0)) continue;
    // the ribbon as it was before something was changed
    context.strokeStyle = OKABE_ITO.vermillion;
    context.lineWidth = 1;
    context.globalAlpha = alpha * (chosen ? 0.9 : 0.5);
    trace(token, ghostNorms);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintGuess(context, scene, { x, y, w, h, layer = 0, text = "" }) {
  const { map, ink, size } = scene,
    long = size.phone ? h : w;
  if (long < 11 && layer % Math.ceil(11 / long)) return;
  const sure = map.numbers.guess_probabilities.values[layer + 1];
  if (size.phone) {
    context.globalAlpha *= 0.45 + 0.55 * sure;
    return beside(context, scene, text, x + 6, y + h / 2);
  }
  context.save();
  context.translate(x + w / 2, y + 6);
  context.rotate(Math.PI / 3);
  context.font = SMALL_LABEL;
  context.textAlign = "left";
  context.fillStyle = ink;
  context.globalAlpha *= 0.45 + 0.55 * sure;
  context.fillText(shorten(context, text, BELOW - 16), 0, 0);
  context.restore();
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintBarOfNext(context, scene, { x, y, w, h, share: choice = 0, text = "" }) {
  const probability = scene.probabilities[choice] ?? 0,
    ghost = scene.ghosts[choice] ?? 0;
  // a pass says nothing before it is through
  if (scene.writing) context.globalAlpha *= Math.max(0, scene.writing.share * 5 - 4);
  const taken = scene.writing?.flight && text === scene.writing.pass.chosen;
  context.fillStyle = taken ? OKABE_ITO.vermillion : QUANTITIES.stream;
  context.fillRect(x, y + h - 7, Math.max(w * probability, 1), 5);
  if (Math.abs(ghost - probability) > 0.001) {
    // where the bar ends without temperature and top-k
    context.fillStyle = scene.ink;
    context.fillRect(x + w * ghost - 1, y + h - 9, 2, 9);
  }
  context.font = choice ? SMALL_LABEL : STRONG_LABEL;
  context.fillStyle = scene.ink;
  context.textAlign = "left";
  const said = chance(probability);
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
  context.strokeStyle = chosen ? headColour(head) : ink;
  context.globalAlpha *= chosen ? 1 : 0.25;
  context.lineWidth = chosen ? 2.5 : 1;
  context.strokeRect(x, y, w, h);
}

// The weights of the chosen head as arcs from the token looked at to the one that looks.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintArcs(context, scene, { x, y, w, h, layer = 0, head = 0 }) {
  const { map, place, size } = scene,
    tokens = map.labels.length,
    strength = context.globalAlpha,
    [begin, long] = size.phone ? [y, h] : [x, w];
  const at = (/** @type {number} */ along, /** @type {number} */ across) =>
    /** @type {[number, number]} */ (size.phone ? [across, along] : [along, across]);
  context.strokeStyle = headColour(head);
  for (let row = 0; row < tokens; row++) {
    for (let column = 0; column < (map.causal ? row + 1 : tokens); column++) {
      const weight = scene.weight(layer, head, row, column);
      if (weight < LIGHT) continue;
      const own = row === place.token;
      context.globalAlpha = strength * weight * (own ? 1 : 0.35);
      context.lineWidth = own ? 2.5 : 1;
      const [from, to] = [middleOf(size, column), middleOf(size, row)];
      context.beginPath();
      context.moveTo(...at(begin, from));
      context.bezierCurveTo(
        ...at(begin + long * 0.6, from),
        ...at(begin + long * 0.4, to),
        ...at(begin + long, to),
      );
      context.stroke();
    }
  }
}

// The strongest neurons of each token: a cell each, by what they write.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintNeurons(context, { opened, size, dark }, { x, y, w, h }) {
  if (!opened) return;
  const { written, activations } = opened.numbers,
    largest = extent(written.values),
    [begin, long] = size.phone ? [y, h] : [x, w],
    each = long / written.shape[1];
  written.values.forEach((value, at) => {
    const token = Math.floor(at / written.shape[1]),
      number = at % written.shape[1],
      sign = activations.values[at] < 0 ? -1 : 1;
    context.fillStyle = diverging((sign * Math.log1p(value)) / Math.log1p(largest), dark);
    const cell = box(
      size,
      begin + number * each,
      each - 1.5,
      size.first + token * size.pitch + 1,
      size.pitch - 2,
    );
    context.fillRect(cell.x, cell.y, cell.w, cell.h);
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
  const title = `${text} (${rows}, ${columns})`;
  heading(context, scene, title, x + w / 2, y - above, w + 30, HUES[tensor]);
  const from = madeFrom(scene.map, tensor);
  heading(context, scene, from, x + w / 2, y + h + 10, w + 16);
  if (w / columns < LEAST_DIGITS || h / rows < 12) return;
  context.font = SMALL_LABEL;
  context.textAlign = "center";
  numbers.values.forEach((value, at) => {
    const masked =
      scene.map.causal && tensor === "weights" && at % columns > Math.floor(at / columns);
    if (masked || value === -Infinity) return;
    context.fillStyle = readable(tone(value));
    const text = number(value, 2),
      fits = context.measureText(text).width < w / columns - 2;
    context.fillText(
      fits ? text : minus(value.toExponential(0)), // 0.000054 is wider than its cell
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
    if (isNamed(h / tokens, token, place.row)) {
      context.font = token === place.row ? STRONG_LABEL : SMALL_LABEL;
      context.textAlign = "right";
      context.fillText(
        shorten(context, label, LABELS - 10),
        x - 5,
        y + ((token + 0.5) * h) / tokens,
      );
    }
    if (across && w / tokens >= LEAST_DIGITS) {
      context.font = token === place.column ? STRONG_LABEL : SMALL_LABEL;
      context.textAlign = "center";
      context.fillText(
        shorten(context, label, w / tokens - 4),
        x + ((token + 0.5) * w) / tokens,
        y - 9,
      );
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
    context.strokeStyle = i ? (HUES[tensor] ?? OKABE_ITO.sky) : OKABE_ITO.vermillion;
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
  for (const value of values)
    if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  return largest;
}
