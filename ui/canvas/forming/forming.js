// @ts-check
// The maps of all heads of a small model during training, one row per layer, each with its score. All
// text reaches the page through textContent or fillText.

const GAP = 8,
  CAPTION = 18,
  MOST_TILE = 150,
  LEAST_TILE = 76, // wide enough for a caption such as "L0H1 0.93"
  WANTED_LINE = 1.5;

/** @typedef {[number, number]} Pair the row and column of a cell, or the corner of a tile */
/**
 * Packed by ui/canvas/forming/__init__.py. wanted: for each layer the cells whose mean is the score:
 * row and column of the first one, and the number of cells along the diagonal.
 * @typedef {{
 *   layers: number, heads: number, labels: string[], title: string, says: string, causal: boolean,
 *   levels: number, largest: number[], scores: number[], best: number[], scoreNames: string[],
 *   wanted: [number, number, number][], digest: string, about?: About, body: Uint8Array<ArrayBuffer>,
 * }} FormingData
 */

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    scroll = find(".scroll"),
    readout = find(".readout"),
    frame = find(".read");
  const { listen, forget } = hearing();
  /** @type {FormingData} */
  const map = unpack(data);
  const nTokens = map.labels.length,
    nHeads = map.layers * map.heads;
  const perHead = map.causal ? (nTokens * (nTokens + 1)) / 2 : nTokens * nTokens;
  /** @type {Uint8Array} the codes of all heads; undefined before they're inflated */
  let codes;
  /** @type {ReturnType<typeof measure>} undefined before the figure is laid out */
  let layout;
  /** @type {{ head: number, cell: Pair } | null} the selected cell */
  let focus = null;
  let alive = true;

  const name = (/** @type {number} */ head) =>
    `L${Math.floor(head / map.heads)}H${head % map.heads}`;
  const visible = (/** @type {Pair} */ [row, column]) => !map.causal || column <= row;
  const place = (/** @type {Pair} */ [row, column]) =>
    map.causal ? (row * (row + 1)) / 2 + column : row * nTokens + column;
  const weight = (/** @type {number} */ head, /** @type {Pair} */ cell) =>
    map.largest[head] * (codes[head * perHead + place(cell)] / map.levels) ** 2;
  const keys = "Use the arrow keys to move from cell to cell.";

  // ---- layout

  function measure() {
    const width = Math.max(scroll.clientWidth, 120);
    const fitting = Math.max(1, Math.floor((width + GAP) / (LEAST_TILE + GAP)));
    // a layer may need several rows, which all have the same length
    const rows = Math.ceil(map.heads / Math.min(map.heads, fitting)),
      across = Math.ceil(map.heads / rows);
    const size = Math.floor(Math.min(MOST_TILE, (width - (across - 1) * GAP) / across));
    /** @type {Pair[]} */
    const at = [];
    for (let head = 0; head < nHeads; head++) {
      const layer = Math.floor(head / map.heads),
        number = head % map.heads;
      const row = layer * rows + Math.floor(number / across);
      at.push([(number % across) * (size + GAP), CAPTION + row * (size + CAPTION + GAP)]);
    }
    const height = map.layers * rows * (size + CAPTION + GAP) - GAP;
    return { size, at, width: across * (size + GAP) - GAP, height };
  }

  // ---- drawing

  /** @type {(context: Pen, ratio: number) => void} */
  function paint(context, ratio) {
    const ink = getComputedStyle(canvas).color,
      { size } = layout;
    const side = Math.round(size * ratio);
    const tile = document.createElement("canvas");
    tile.width = tile.height = side;
    context.imageSmoothingEnabled = false;
    layout.at.forEach(([x, y], head) => {
      pen(tile).putImageData(tileOf(head, side), 0, 0);
      context.drawImage(tile, 0, 0, side, side, x, y, size, size);
      const best = map.best.includes(head);
      context.strokeStyle = ink;
      context.globalAlpha = best ? 1 : 0.3;
      context.lineWidth = best ? 2 : 1;
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      context.globalAlpha = 1;
      wanted(context, head, x, y);
      context.font = best ? STRONG_LABEL : LABEL;
      context.fillStyle = ink;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(`${name(head)} ${map.scores[head].toFixed(2)}`, x, y - CAPTION / 2);
    });
  }

  // The weights of a head as pixels; masked cells stay transparent.
  /** @type {(head: number, side: number) => ImageData} */
  function tileOf(head, side) {
    const image = new ImageData(side, side),
      pixels = new Uint32Array(image.data.buffer);
    const index = Array.from({ length: side }, (_, at) => Math.floor((at * nTokens) / side));
    const tones = Array.from({ length: map.levels + 1 }, (_, code) => {
      const root = (Math.sqrt(map.largest[head]) * code) / map.levels; // the square root of the weight
      return new Uint32Array(Uint8Array.of(...colourNumbers(root), 255).buffer)[0];
    });
    for (let y = 0; y < side; y++) {
      for (let x = 0; x < side; x++) {
        /** @type {Pair} */
        const cell = [index[y], index[x]];
        if (visible(cell)) pixels[y * side + x] = tones[codes[head * perHead + place(cell)]];
      }
    }
    return image;
  }

  // Two lines along the cells whose mean is the score.
  /** @type {(context: Pen, head: number, x: number, y: number) => void} */
  function wanted(context, head, x, y) {
    const [row, column, count] = map.wanted[Math.floor(head / map.heads)];
    const cell = layout.size / nTokens;
    context.strokeStyle = OKABE_ITO.vermillion;
    context.lineWidth = WANTED_LINE;
    context.beginPath();
    for (const [down, right] of [
      [1, 0],
      [0, 1],
    ]) {
      context.moveTo(x + (column + right) * cell, y + (row + down) * cell);
      context.lineTo(x + (column + right + count - 1) * cell, y + (row + down + count - 1) * cell);
    }
    context.stroke();
  }

  function draw() {
    if (!codes || scroll.clientWidth === 0) return;
    layout = measure();
    const { context, ratio } = sizeCanvas(canvas, layout);
    paint(context, ratio);
    // for programs that read the picture: what was painted, and the position of each head
    const heads = JSON.stringify(layout.at);
    Object.assign(canvas.dataset, { painted: map.digest, size: layout.size, heads });
    drawFrame();
  }

  function drawFrame() {
    frame.hidden = !focus;
    if (!focus) return;
    const [x, y] = layout.at[focus.head],
      cell = layout.size / nTokens,
      [row, column] = focus.cell;
    Object.assign(frame.style, {
      left: `${x + column * cell - 2}px`,
      top: `${y + row * cell - 2}px`,
      width: `${cell + 4}px`,
      height: `${cell + 4}px`,
    });
  }

  // ---- reading

  function tell() {
    if (!focus) {
      readout.textContent = "";
      return;
    }
    const { head, cell } = focus,
      [row, column] = cell;
    const said = visible(cell)
      ? percent(weight(head, cell))
      : "masked, because the key comes after the query";
    readout.textContent =
      `${name(head)}: query ${row} “${isolated(map.labels[row])}” → ` +
      `key ${column} “${isolated(map.labels[column])}”: ${said}. ` +
      `${map.scoreNames[Math.floor(head / map.heads)]}: ${map.scores[head].toFixed(3)}.`;
  }

  /** @param {{ head: number, cell: Pair } | null} next */
  function read(next) {
    focus = next;
    tell();
    drawFrame();
  }

  /** @param {PointerEvent} event */
  function onPointer(event) {
    if (!layout || !codes) return;
    const box = canvas.getBoundingClientRect(),
      { size } = layout;
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    const index = (/** @type {number} */ offset) =>
      Math.min(Math.floor((offset / size) * nTokens), nTokens - 1);
    layout.at.forEach(([left, top], head) => {
      if (x >= left && x < left + size && y >= top && y < top + size) {
        read({ head, cell: [index(y - top), index(x - left)] });
      }
    });
  }

  /** @type {Record<string, Pair>} */
  const ARROWS = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (!codes) return;
    if (event.key === "Escape") return read(null);
    const move = ARROWS[event.key];
    if (!move) return;
    event.preventDefault();
    if (!focus) {
      const [row, column] = map.wanted[0];
      return read({ head: map.best[0] ?? 0, cell: [row, column] });
    }
    // beyond the edge of a map, continue in the next one
    let { head } = focus;
    let [row, column] = focus.cell;
    row = Math.min(Math.max(row + move[0], 0), nTokens - 1);
    column += move[1];
    if (column < 0 || column >= nTokens) {
      const next = head + move[1];
      if (next < 0 || next >= nHeads) return;
      head = next;
      column = column < 0 ? nTokens - 1 : 0;
    }
    read({ head, cell: [row, column] });
    frame.scrollIntoView({ block: "nearest", inline: "nearest" });
    readout.scrollIntoView({ block: "nearest" });
  }

  const scale = {
    tone: colour,
    low: "0",
    middle: "0.25",
    high: "1",
    text: "weight (square-root scale):",
  };
  find(".title").textContent = map.title;
  showLegend(find(".key"), [scale]);
  canvas.setAttribute(
    "aria-label",
    `${map.title}: ${map.layers} layers of ${map.heads} heads, ${nTokens} tokens. ${keys}`,
  );
  tell();
  listen(canvas, "pointermove", onPointer);
  listen(canvas, "pointerdown", onPointer);
  listen(canvas, "pointerleave", (event) => event.pointerType === "mouse" && layout && read(null));
  listen(canvas, "keydown", onKey);
  listen(canvas, "transitionend", draw); // the theme changed
  offerTools(parentElement, listen, {
    keys,
    picture: () =>
      layout && {
        // tiles are images even in an SVG, so they need the resolution of a PNG
        draw: (context, ratio) => paint(context, Math.max(ratio, 2)),
        width: layout.width,
        height: layout.height,
        element: canvas,
        title: map.title,
        says: map.says,
        name: "heads-that-form",
        scales: [scale],
      },
    failed: (text) => {
      readout.textContent = text;
    },
  });

  const stopWatching = onResize(scroll, draw);
  inflate(map.body).then((inflated) => {
    if (!alive) return;
    codes = inflated;
    draw();
    markHeightFinal(parentElement);
  });

  return replaceLast(parentElement, () => {
    alive = false;
    stopWatching();
    forget();
  });
}
