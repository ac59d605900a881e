// @ts-check
// Paints each item of the one-pass picture, on the page's canvas or to a file.

const MIN_DIGITS = 34, // the minimum width of a cell with a number
  LIGHT = 0.04; // arcs of smaller weights aren't drawn
// The quantity of each tensor, for those with their own color on all pages.
/** @type {Record<string, string>} */
const HUES = {
  q: QUANTITIES.queries,
  k: QUANTITIES.keys,
  v: QUANTITIES.values,
  added: QUANTITIES.attention,
};
const MARK = 8;

/**
 * What the painters need in addition to an item: the data, the selection and the theme.
 * @typedef {{
 *   map: PassData, opened: Opened | null, place: Place, size: Size, dark: boolean, ink: string,
 *   items: Map<string, Item>, frames: [string, number, number, number, number][],
 *   weight: (layer: number, head: number, row: number, column: number) => number,
 *   image: (name: string, numbers: Numbers, tone: (value: number) => number[]) => HTMLCanvasElement,
 *   writing: Writing | null, probabilities: number[], ghosts: number[],
 *   edges: Edge[], least: number, route: Route, selected: number, pointed: Pointed | null,
 * }} Scene
 */
/** @typedef {(value: number) => Rgb} Tone */

/** @type {(context: Pen, scene: Scene) => void} */
function paint(context, scene) {
  const items = [...scene.items.values()].sort((a, b) => a.rank - b.rank);
  context.textBaseline = "middle";
  paintFlow(context, scene);
  for (const item of items) {
    if (item.kind === "slab" || item.alpha <= 0 || item.w < 0.5) continue;
    context.globalAlpha = item.alpha;
    PAINTERS[item.kind](context, scene, item);
    context.globalAlpha = 1;
  }
  paintFrames(context, scene);
  paintWriting(context, scene);
  const { opened, place, size } = scene;
  if (opened?.missing && inHead(place))
    heading(context, scene, opened.missing, size.width / 2, size.first + 30, size.width);
}

/** @type {Record<string, (context: Pen, scene: Scene, item: Item) => void>} */
const PAINTERS = {
  word: paintWord,
  bar: paintNext,
  tile: paintTile,
  arcs: paintArcs,
  neurons: paintNeurons,
  matrix: paintMatrix,
};

/** @type {(context: Pen, scene: Scene, text: string, x: number, y: number, room: number, hue?: string) => void} */
function heading(context, { ink }, text, x, y, room, hue) {
  context.font = LABEL;
  context.textAlign = "left";
  const shown = shorten(context, text, room),
    width = context.measureText(shown).width + (hue ? MARK + 4 : 0);
  write(context, ink, shown, x - width / 2, y, hue);
}

// A text that starts at `x`, after a square in the color of the quantity it names, if it has one.
/** @type {(context: Pen, ink: string, text: string, x: number, y: number, hue?: string) => void} */
function write(context, ink, text, x, y, hue) {
  if (hue) {
    context.fillStyle = hue;
    context.fillRect(x, y - MARK / 2, MARK, MARK);
  }
  context.fillStyle = ink;
  context.fillText(text, hue ? x + MARK + 4 : x, y);
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
  if (w < MIN_DIGITS) return;
  context.globalAlpha = 1;
  context.font = chosen ? STRONG_LABEL : LABEL;
  context.textAlign = "right";
  // a decoder's upper right corner is empty
  context.fillStyle = map.causal ? ink : "#ffffff";
  context.fillText(`H${head}`, x + w - 5, y + 11);
}

// The weights of the selected head as arcs from the key to the query.
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

// The strongest neurons of each token, one cell each, colored by the size of their output.
/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintNeurons(context, scene, { x, y, w, h }) {
  const { opened, size, dark } = scene;
  if (!opened) return;
  if (!size.phone) heading(context, scene, "strongest neurons", x + w / 2, size.first - 10, w + 30);
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
  const from = inputsOfTensor(scene.map, tensor);
  heading(context, scene, from, x + w / 2, y + h + 10, w + 16);
  if (w / columns < MIN_DIGITS || h / rows < 12) return;
  context.font = LABEL;
  context.textAlign = "center";
  numbers.values.forEach((value, at) => {
    const masked =
      scene.map.causal && tensor === "weights" && at % columns > Math.floor(at / columns);
    if (masked || value === -Infinity) return;
    context.fillStyle = readable(tone(value));
    const text = number(value, 2),
      fits = context.measureText(text).width < w / columns - 2;
    context.fillText(
      fits ? text : Math.abs(value) < 0.01 ? "≈0" : "", // the readout shows all digits
      x + ((at % columns) + 0.5) * (w / columns),
      y + (Math.floor(at / columns) + 0.5) * (h / rows),
    );
  });
}

// The tokens next to the rows of a matrix, and above its columns if the columns are tokens, too.
/** @type {(context: Pen, scene: Scene, box: { x: number, y: number, w: number, h: number }, across: boolean) => void} */
function paintTokens(context, { map, size, ink, place }, { x, y, w, h }, across) {
  if (size.phone) return;
  const tokens = map.labels.length;
  context.fillStyle = ink;
  map.labels.forEach((label, token) => {
    if (isNamed(h / tokens, token, place.row)) {
      context.font = token === place.row ? STRONG_LABEL : LABEL;
      context.textAlign = "right";
      context.fillText(
        shorten(context, label, LABELS - 10),
        x - 5,
        y + ((token + 0.5) * h) / tokens,
      );
    }
    if (across && w / tokens >= MIN_DIGITS) {
      context.font = token === place.column ? STRONG_LABEL : LABEL;
      context.textAlign = "center";
      context.fillText(
        shorten(context, label, w / tokens - 4),
        x + ((token + 0.5) * w) / tokens,
        y - 9,
      );
    }
  });
}

// Frames around the selected cell and its inputs.
/** @type {(context: Pen, scene: Scene) => void} */
function paintFrames(context, scene) {
  scene.frames.forEach(([tensor, row, column, rows, columns], i) => {
    const item = scene.items.get(`step ${tensor}`),
      numbers = scene.opened?.numbers[tensor];
    if (!item || !numbers) return;
    const { x, y, width, height } = boxOf(gridOfCells(item, numbers.shape), row, column);
    context.strokeStyle = i ? (HUES[tensor] ?? OKABE_ITO.sky) : OKABE_ITO.vermillion;
    context.lineWidth = 2.5;
    context.strokeRect(x, y, columns * width, rows * height);
  });
}

/** @type {(values: Float32Array) => number} the largest finite absolute value, but never 0 */
function extent(values) {
  let largest = 1e-12;
  for (const value of values)
    if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  return largest;
}
