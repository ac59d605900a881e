// @ts-check
// Every head of a model on one canvas. All text reaches the page through textContent or fillText.

const FONT_PX = 13,
  ROW_LABEL = 26,
  TOP_LABEL = 18,
  CAPTION = 15,
  GAP = 3,
  BLOCK_GAP = 22;
const SCROLLBAR = 16,
  LEAST_HEIGHT = 200;
const MIN_TILE = 14,
  MAX_TILE = 132,
  MOST_HEIGHT = 860,
  LARGE_TILE = 190;
const MIN_CAPTIONED = 68; // "10.11: 6.78" fits below it

/** @typedef {[number, number]} Pair the row and column of a cell, or the corner of a tile */
/**
 * As pages/compare/heads/mosaic.py describes it.
 * @typedef {{
 *   selected: number, order: number[] | null, captions: string[], scale: number | null,
 *   square_root: boolean, threshold: number, hidden: number[], large: boolean,
 * }} Arrangement
 */
/**
 * What pages/compare/heads/packing.py packs.
 * @typedef {{
 *   name: string, layers: number, heads: number, labels: string[], title: string, causal: boolean,
 *   valueName: string, levels: number, largest: number[], digest: string,
 *   says: string, about?: About, body: Uint8Array<ArrayBuffer>,
 * }} MosaicData
 */

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    scroll = find(".scroll");
  const readout = find(".readout"),
    { listen, forget } = hearing();
  /** @type {MosaicData} */
  const map = unpack(data);
  const nHeads = map.layers * map.heads,
    nTokens = map.labels.length;
  const perHead = map.causal ? (nTokens * (nTokens + 1)) / 2 : nTokens * nTokens;
  const scratch = document.createElement("canvas");
  /** @type {Uint8Array} of all heads; none before they are inflated */
  let codes;
  /** @type {ReturnType<typeof measure>} none before the picture has a place on the page */
  let layout;
  /** @type {number | null} the head that is read, and the cell in it */
  let focus = null;
  /** @type {Pair} */
  let cell = [0, 0];
  let alive = true;
  /** @type {Arrangement} */
  let arrangement = {
    selected: 0,
    order: null,
    captions: [],
    scale: null,
    square_root: true,
    threshold: 0,
    hidden: [],
    large: false,
  };

  /**
   * @param {number} head
   * @param {number} head
   */
  const layerOf = (/** @type {number} */ head) => Math.floor(head / map.heads),
    headOf = (/** @type {number} */ head) => head % map.heads;
  /**
   * @param {number} row
   * @param {number} column
   */
  const visible = (row, column) => !map.causal || column <= row;
  /**
   * @param {number} row
   * @param {number} column
   */
  const place = (row, column) =>
    map.causal ? (row * (row + 1)) / 2 + column : row * nTokens + column;
  /**
   * @param {number} head
   * @param {number} code
   */
  const decode = (head, code) => map.largest[head] * (code / map.levels) ** 2;
  // by how much a value that is read back may be off
  /**
   * @param {number} head
   * @param {number} code
   */
  const error = (head, code) => (map.largest[head] * (code + 0.25)) / map.levels ** 2;

  // --- where each head lies -------------------------------------------------------------------

  // Layers below each other, in as many blocks beside each other as make the tiles largest.
  /** @param {number} width */
  function grid(width) {
    let best = { blocks: 1, rows: map.layers, tile: -Infinity };
    for (let blocks = 1; blocks <= map.layers; blocks++) {
      const rows = Math.ceil(map.layers / blocks);
      const across = (width - blocks * ROW_LABEL - (blocks - 1) * BLOCK_GAP) / (blocks * map.heads);
      const down = (MOST_HEIGHT - TOP_LABEL) / rows;
      const tile = Math.floor(Math.min(across, down, MAX_TILE));
      if (tile > best.tile) best = { blocks, rows, tile };
      if (across < MIN_TILE) break;
    }
    const tile = arrangement.large ? LARGE_TILE : Math.max(best.tile, MIN_TILE);
    const { rows } = best,
      size = tile - GAP;
    const blockWidth = ROW_LABEL + map.heads * tile + BLOCK_GAP;
    /** @type {Map<number, Pair>} */
    const at = new Map();
    for (let head = 0; head < nHeads; head++) {
      const block = Math.floor(layerOf(head) / rows);
      at.set(head, [
        block * blockWidth + ROW_LABEL + headOf(head) * tile,
        TOP_LABEL + (layerOf(head) % rows) * tile,
      ]);
    }
    const blocks = Math.ceil(map.layers / rows);
    return {
      size,
      at,
      rows,
      step: map.heads,
      order: [...at.keys()],
      captions: false,
      width: blocks * blockWidth - BLOCK_GAP,
      height: TOP_LABEL + rows * tile,
    };
  }

  // The chosen heads one after the other, each with its caption.
  /**
   * @param {number} width
   * @param {number} most
   * @param {number[]} order
   */
  function flow(width, most, order) {
    const count = Math.max(order.length, 1);
    let tile = arrangement.large ? LARGE_TILE : MAX_TILE;
    const perRow = () => Math.max(1, Math.floor(width / (tile + GAP)));
    const height = () => Math.ceil(count / perRow()) * (tile + CAPTION + GAP);
    while (!arrangement.large && tile > MIN_CAPTIONED && height() > most) tile--;
    /** @type {Map<number, Pair>} */
    const at = new Map();
    order.forEach((head, i) => {
      at.set(head, [
        (i % perRow()) * (tile + GAP),
        Math.floor(i / perRow()) * (tile + CAPTION + GAP),
      ]);
    });
    return {
      size: tile,
      at,
      step: perRow(),
      order,
      captions: true,
      rows: 0,
      width: Math.min(count, perRow()) * (tile + GAP),
      height: height(),
    };
  }

  function measure() {
    const width = Math.max(scroll.clientWidth, 120);
    const fit = grid(width);
    const shown = arrangement.order ? flow(width, fit.height, arrangement.order) : fit;
    // one height for every order, so that nothing below jumps; what is higher scrolls
    const frame = Math.max(Math.min(MOST_HEIGHT, fit.height), LEAST_HEIGHT);
    scroll.style.height = `${frame + SCROLLBAR}px`;
    return shown;
  }

  // --- colours --------------------------------------------------------------------------------

  // The colour of each code of a head, as bytes of an image; what is below the threshold is clear.
  /** @param {number} head */
  function palette(head) {
    const table = new Uint8ClampedArray(4 * (map.levels + 1));
    const scale = arrangement.scale ?? map.largest[head];
    for (let code = 0; code <= map.levels; code++) {
      const value = decode(head, code);
      const share = scale > 0 ? Math.min(value / scale, 1) : 0;
      const rgb = colourNumbers(arrangement.square_root ? Math.sqrt(share) : share);
      table.set([...rgb, share < arrangement.threshold ? 0 : 255], 4 * code);
    }
    return table;
  }

  // All heads on one hidden canvas, each with a pixel for each cell, but at most `most` pixels high
  // and wide: then a pixel shows the largest of its cells. Filling one canvas once is much faster
  // than filling a small one for each head.
  /** @param {number} most */
  function sheet(most) {
    const size = Math.min(nTokens, most),
      heads = [...layout.at.keys()];
    const across = Math.ceil(Math.sqrt(heads.length)),
      down = Math.ceil(heads.length / across);
    const image = new ImageData(Math.max(across * size, 1), Math.max(down * size, 1));
    /** @type {Map<number, Pair>} */
    const corners = new Map();
    heads.forEach((head, i) => {
      const left = (i % across) * size,
        top = Math.floor(i / across) * size;
      corners.set(head, [left, top]);
      fill(image, head, size, left, top);
    });
    scratch.width = image.width;
    scratch.height = image.height;
    pen(scratch).putImageData(image, 0, 0);
    return { size, corners };
  }

  /**
   * @param {ImageData} image
   * @param {number} head
   * @param {number} size
   * @param {number} left
   * @param {number} top
   */
  function fill(image, head, size, left, top) {
    const table = palette(head),
      hidden = hiddenKeys();
    const pixels = [...Array(size).keys()];
    const first = pixels.map((pixel) => Math.floor((pixel * nTokens) / size));
    const end = pixels.map((pixel) =>
      Math.max(first[pixel] + 1, Math.floor(((pixel + 1) * nTokens) / size)),
    );
    const best = new Int16Array(size);
    for (let y = 0; y < size; y++) {
      best.fill(-1);
      for (let row = first[y]; row < end[y]; row++) {
        const start = head * perHead + place(row, 0),
          seen = map.causal ? row + 1 : nTokens;
        for (let x = 0; x < size; x++) {
          const stop = Math.min(end[x], seen);
          for (let column = first[x]; column < stop; column++) {
            if (!hidden[column]) best[x] = Math.max(best[x], codes[start + column]);
          }
        }
      }
      const begin = 4 * ((top + y) * image.width + left);
      for (let x = 0; x < size; x++) {
        if (best[x] < 0) continue;
        for (let i = 0; i < 4; i++) image.data[begin + 4 * x + i] = table[4 * best[x] + i];
      }
    }
  }

  function hiddenKeys() {
    const hidden = new Uint8Array(nTokens);
    for (const column of arrangement.hidden) hidden[column] = 1;
    return hidden;
  }

  // --- drawing --------------------------------------------------------------------------------

  /**
   * @param {Pen} context
   * @param {number} ratio
   */
  function paint(context, ratio) {
    const ink = getComputedStyle(canvas).color,
      { size } = layout;
    context.font = `${FONT_PX}px ${FAMILY}`;
    context.imageSmoothingEnabled = false;
    const { size: side, corners } = sheet(Math.round(size * ratio));
    for (const [head, [x, y]] of layout.at) {
      const [left, top] = corners.get(head) ?? [0, 0];
      context.drawImage(scratch, left, top, side, side, x, y, size, size);
      context.strokeStyle = ink;
      context.globalAlpha = 0.25;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      context.globalAlpha = 1;
      if (layout.captions) caption(context, ink, head, x, y + size);
    }
    if (!layout.captions) names(context, ink);
  }

  /**
   * @param {Pen} context
   * @param {string} ink
   * @param {number} head
   * @param {number} x
   * @param {number} y
   */
  function caption(context, ink, head, x, y) {
    context.fillStyle = ink;
    context.textAlign = "left";
    context.textBaseline = "top";
    const value = arrangement.captions[head];
    const name = `L${layerOf(head)}H${headOf(head)}`;
    context.fillText(value ? `${name}: ${value}` : name, x, y + 2);
  }

  // The numbers of the layers at the left of each block, those of the heads above.
  /**
   * @param {Pen} context
   * @param {string} ink
   */
  function names(context, ink) {
    const every = Math.ceil(FONT_PX / layout.size);
    context.fillStyle = ink;
    context.textBaseline = "middle";
    for (const [head, [x, y]] of layout.at) {
      const middle = layout.size / 2;
      if (headOf(head) === 0 && layerOf(head) % every === 0) {
        context.textAlign = "right";
        context.fillText(String(layerOf(head)), x - 6, y + middle);
      }
      if (layerOf(head) % layout.rows === 0) {
        context.textAlign = "center";
        context.fillText(String(headOf(head)), x + middle, TOP_LABEL / 2);
      }
    }
  }

  function draw() {
    if (!codes || scroll.clientWidth === 0) return;
    layout = measure();
    const { context, ratio } = layOut(canvas, layout);
    paint(context, ratio);
    if (focus !== null && !layout.at.has(focus)) focus = null;
    drawFrames();
    // for whoever reads the picture by program: what was painted, and where each head lies
    const heads = JSON.stringify([...layout.at].map(([head, at]) => [head, ...at]));
    Object.assign(canvas.dataset, { painted: map.digest, size: layout.size, heads });
    legend();
  }

  // Frames around the open head and the one being read: elements above the canvas, so that moving
  // one paints no tile anew.
  function drawFrames() {
    for (const [name, head] of /** @type {const} */ ([
      ["open", arrangement.selected],
      ["read", focus],
    ])) {
      const frame = find(`.${name}`),
        at = head === null ? undefined : layout?.at.get(head);
      frame.hidden = !at;
      if (at) over(frame, at);
    }
  }

  function legend() {
    const { scale } = arrangement;
    find(".high").textContent = scale === null ? "largest of each head" : number(scale, 3);
    find(".middle").textContent =
      scale === null ? "" : number(scale / (arrangement.square_root ? 4 : 2), 3);
    const kind = [arrangement.square_root ? "square-root colours" : "linear colours"];
    if (arrangement.threshold > 0) {
      kind.push(`below ${Math.round(100 * arrangement.threshold)} % of the scale not drawn`);
    }
    if (map.causal) kind.push("empty: the query may not look ahead");
    const left = arrangement.hidden.length;
    if (left) kind.push(`${left} ${left === 1 ? "key" : "keys"} left out`);
    find(".kind").textContent = kind.join("; ");
  }

  // --- reading --------------------------------------------------------------------------------

  const keys =
    "A click opens a head. Arrow keys go from head to head, Shift and arrows from cell to cell, and " +
    "Enter opens.";

  /**
   * @param {number} head
   * @param {Pair} at
   */
  function describe(head, at) {
    const own = codes.subarray(head * perHead, (head + 1) * perHead);
    const [row, column] = at;
    const where = `L${layerOf(head)}H${headOf(head)}`;
    const pair = `“${isolated(map.labels[row])}” → “${isolated(map.labels[column])}”`;
    if (!visible(row, column)) return `${where}: ${pair}: masked, the query may not look ahead`;
    if (arrangement.hidden.includes(column)) return `${where}: ${pair}: this key is left out`;
    const code = own[place(row, column)];
    const exact = decode(head, code),
      value = map.valueName === "weight" ? percent(exact) : `${map.valueName} ${number(exact, 3)}`;
    const said = arrangement.captions[head] ? ` (${arrangement.captions[head]})` : "";
    Object.assign(readout.dataset, { value: exact, off: error(head, code) });
    return `${where}${said}: ${pair}: ${value}`;
  }

  /** @param {number} head */
  function largestCell(head) {
    const hidden = hiddenKeys();
    /** @type {Pair} */
    let best = [0, 0];
    let most = -1;
    for (let row = 0; row < nTokens; row++) {
      for (let column = 0; column < nTokens; column++) {
        if (!visible(row, column) || hidden[column]) continue;
        const code = codes[head * perHead + place(row, column)];
        if (code <= most) continue;
        best = [row, column];
        most = code;
      }
    }
    return best;
  }

  /**
   * @param {number} head
   * @param {Pair} at
   */
  function choose(head, at) {
    const moved = head !== focus;
    focus = head;
    cell = at;
    // where the readout is, for whoever reads the picture by program; a hidden cell has no number
    Object.assign(readout.dataset, { head, cell: at.join(" "), value: "", off: "" });
    readout.textContent = describe(head, at);
    if (moved) drawFrames();
  }

  function clear() {
    focus = null;
    readout.textContent = "";
    Object.assign(readout.dataset, { head: "", cell: "", value: "", off: "" });
    drawFrames();
  }

  /** @type {(event: PointerEvent) => [head: number, at: Pair] | null} */
  function under(event) {
    if (!layout || !codes) return null;
    const box = canvas.getBoundingClientRect(),
      { size } = layout;
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    for (const [head, [left, top]] of layout.at) {
      if (x >= left && x < left + size && y >= top && y < top + size) {
        const index = (/** @type {number} */ offset) =>
          Math.min(Math.floor((offset / size) * nTokens), nTokens - 1);
        return [head, [index(y - top), index(x - left)]];
      }
    }
    return null;
  }

  /** @param {number} head */
  function open(head) {
    arrangement = { ...arrangement, selected: head };
    drawFrames();
    setTriggerValue("open", head);
  }

  const onMove = (/** @type {any} */ event) => {
    const found = under(event);
    if (found) choose(...found);
  };
  const onClick = (/** @type {any} */ event) => {
    const found = under(event);
    if (found) open(found[0]);
  };
  const onLeave = (/** @type {any} */ event) => event.pointerType === "mouse" && codes && clear();

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
    if (event.key === "Escape") return clear();
    const order = layout.order,
      home = order.includes(arrangement.selected) ? arrangement.selected : order[0];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return open(focus ?? home);
    }
    /**
     * @param {number} value
     * @param {number} count
     */
    const clamp = (value, count) => Math.min(Math.max(value, 0), count - 1);
    if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      const head = order[event.key === "Home" ? 0 : order.length - 1];
      choose(head, largestCell(head));
      return follow();
    }
    const move = ARROWS[event.key];
    if (!move) return;
    event.preventDefault();
    if (focus === null) {
      choose(home, largestCell(home));
    } else if (event.shiftKey) {
      choose(focus, [clamp(cell[0] + move[0], nTokens), clamp(cell[1] + move[1], nTokens)]);
    } else {
      const next = order.indexOf(focus) + move[0] * layout.step + move[1];
      if (next >= 0 && next < order.length) choose(order[next], largestCell(order[next]));
    }
    follow();
  }

  // Lay an element over the tile at a corner.
  /** @type {(element: HTMLElement, corner: Pair) => void} */
  function over(element, [x, y]) {
    Object.assign(element.style, {
      left: `${x}px`,
      top: `${y}px`,
      width: `${layout.size}px`,
      height: `${layout.size}px`,
    });
  }

  // Bring the head that is read into view, whatever scrolls around the picture.
  function follow() {
    find(".read").scrollIntoView({ block: "nearest", inline: "nearest" });
    readout.scrollIntoView({ block: "nearest" });
  }

  // --- what the page around says --------------------------------------------------------------

  function takeArrangement() {
    const given = /** @type {Arrangement | undefined} */ (
      window.attentionLabArrangements?.get(map.name)
    );
    if (!given) return;
    // until the new arrangement is here it may still be that of a model with more heads
    arrangement = {
      ...given,
      order: given.order?.filter((head) => head < nHeads) ?? null,
    };
  }
  /** @param {CustomEvent} event */
  function onArrange(event) {
    if (event.detail !== map.name) return;
    const others = () => JSON.stringify({ ...arrangement, selected: null });
    const before = others();
    takeArrangement();
    // another open head moves a frame; the tiles stay as they are
    if (layout && others() === before) drawFrames();
    else draw();
  }

  listen(canvas, "pointermove", onMove);
  listen(canvas, "pointerdown", onMove);
  listen(canvas, "click", onClick);
  listen(canvas, "pointerleave", onLeave);
  listen(canvas, "keydown", onKey);
  listen(canvas, "transitionend", draw); // the theme changed
  listen(window, "attention-lab-arrange", onArrange);
  const saved = () =>
    layout && {
      // the tiles of an SVG are images: as fine as those of a PNG
      draw: (/** @type {Pen} */ context, /** @type {number} */ ratio) =>
        paint(context, Math.max(ratio, 2)),
      width: layout.width,
      height: layout.height,
      element: canvas,
      title: map.title,
      says: map.says,
      about: map.about,
      name: `every-head-${map.valueName}s`,
      scales: [
        {
          tone: colour,
          low: "0",
          middle: find(".middle").textContent,
          high: find(".high").textContent,
          text: `${map.valueName}s, ${find(".kind").textContent}`,
        },
      ],
    };
  const strongest = (/** @type {number} */ head) => {
    const [row, column] = largestCell(head);
    const weight = decode(head, codes[head * perHead + place(row, column)]);
    return [`L${layerOf(head)}H${headOf(head)}`, map.labels[row], map.labels[column], weight];
  };
  offerTools(parentElement, listen, {
    picture: saved,
    keys,
    table: () => [
      ["head", "query", "key", `largest ${map.valueName}`],
      ...(codes ? [...Array(nHeads).keys()].map(strongest) : []), // until they are unpacked: none
    ],
    failed: (text) => {
      readout.textContent = text;
    },
  });

  find(".open").style.setProperty("--frame", OKABE_ITO.vermillion);
  find(".title").textContent = map.title;
  canvas.setAttribute(
    "aria-label",
    `${map.title}: ${map.layers} layers of ${map.heads} heads, ${nTokens} tokens. ${keys}`,
  );
  const bar = canvasElement(parentElement, ".bar"),
    strip = pen(bar);
  bar.width = 180;
  for (let x = 0; x < bar.width; x++) {
    strip.fillStyle = colour(x / (bar.width - 1));
    strip.fillRect(x, 0, 1, bar.height);
  }

  const stopWatching = onNewWidth(scroll, draw);
  takeArrangement();
  inflate(map.body).then((inflated) => {
    if (!alive) return;
    codes = inflated;
    draw();
    hasItsHeight(parentElement);
  });

  return inPlaceOfTheLast(parentElement, () => {
    alive = false;
    stopWatching();
    forget();
  });
}
