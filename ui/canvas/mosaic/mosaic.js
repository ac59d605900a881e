// @ts-check
// All heads of a model on one canvas. All text reaches the page through textContent or fillText.

const SCROLLBAR = 16;
const KEYS =
  "Click a head to open it. Use the arrow keys to move from head to head, Shift and arrow keys to " +
  "move from cell to cell, and Enter to open a head.";
/** @type {Arrangement} */
const BEFORE_ARRANGING = {
  selected: 0,
  order: null,
  captions: [],
  scale: null,
  square_root: true,
  threshold: 0,
  hidden: [],
  large: false,
};

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    scroll = find(".scroll"),
    readout = find(".readout"),
    { listen, forget } = hearing();
  /** @type {MosaicData} */
  const map = unpack(data);
  const nTokens = map.labels.length,
    sheet = document.createElement("canvas");
  /** @type {MosaicView} */
  const view = { map, codes: new Uint8Array(), arrangement: BEFORE_ARRANGING };
  /** @type {TileLayout | null} null before the figure is laid out */
  let layout = null;
  /** @type {{ head: number, cell: TileCell } | null} the selected cell */
  let focus = null;
  let isMounted = true;

  const isReady = () => view.codes.length > 0;

  // --- drawing --------------------------------------------------------------------------------

  /** @type {(tiles: TileLayout, context: Pen, ratio: number) => void} */
  const paintTiles = (tiles, context, ratio) =>
    paintMosaic(view, tiles, context, ratio, getComputedStyle(canvas).color, sheet);

  function draw() {
    if (!isReady() || scroll.clientWidth === 0) return;
    const measured = mosaicLayout(map, view.arrangement, Math.max(scroll.clientWidth, 120));
    layout = measured.layout;
    scroll.style.height = `${measured.frameHeight + SCROLLBAR}px`;
    const { context, ratio } = sizeCanvas(canvas, layout);
    paintTiles(layout, context, ratio);
    if (focus && !layout.tiles.has(focus.head)) focus = null;
    drawFrames();
    // for programs that read the picture: what was painted, and the position of each head
    const heads = JSON.stringify([...layout.tiles].map(([head, { x, y }]) => [head, x, y]));
    Object.assign(canvas.dataset, { painted: map.digest, size: layout.size, heads });
    for (const [part, text] of Object.entries(mosaicScale(view))) {
      find(`.${part}`).textContent = text;
    }
  }

  // Frames around the open head and the selected head are elements above the canvas, so that moving
  // them doesn't repaint any tiles.
  function drawFrames() {
    drawFrame(".open", view.arrangement.selected);
    drawFrame(".read", focus?.head);
  }

  /** @type {(selector: string, head?: number) => void} */
  function drawFrame(selector, head) {
    const frame = find(selector),
      tile = head === undefined ? undefined : layout?.tiles.get(head);
    frame.hidden = !tile;
    if (!tile) return;
    Object.assign(frame.style, {
      left: `${tile.x}px`,
      top: `${tile.y}px`,
      width: `${tile.width}px`,
      height: `${tile.height}px`,
    });
  }

  /** @returns {Picture | null} the picture to save */
  function picture() {
    if (!layout) return null;
    const tiles = layout,
      { middle, high, kind } = mosaicScale(view);
    return {
      // tiles are images even in an SVG, so they need the resolution of a PNG
      draw: (context, ratio) => paintTiles(tiles, context, Math.max(ratio, 2)),
      width: tiles.width,
      height: tiles.height,
      element: canvas,
      title: map.title,
      says: map.says,
      about: map.about,
      name: `every-head-${map.valueName}s`,
      scales: [{ tone: colour, low: "0", middle, high, text: `${map.valueName}s, ${kind}` }],
    };
  }

  // --- reading --------------------------------------------------------------------------------

  /** @type {(head: number, cell: TileCell) => void} */
  function read(head, cell) {
    const isNewHead = head !== focus?.head;
    focus = { head, cell };
    const { text, value, off } = describeTile(view, head, cell);
    // for programs that read the picture: the cell and its exact numbers
    Object.assign(readout.dataset, { head, cell: cell.join(" "), value, off });
    readout.textContent = text;
    if (isNewHead) drawFrames();
  }

  const readLargest = (/** @type {number} */ head) =>
    read(head, largestCell(map, view.codes, view.arrangement.hidden, head));

  function clear() {
    focus = null;
    readout.textContent = "";
    Object.assign(readout.dataset, { head: "", cell: "", value: "", off: "" });
    drawFrames();
  }

  /** @param {number} head */
  function open(head) {
    view.arrangement = { ...view.arrangement, selected: head };
    drawFrames();
    setTriggerValue("open", head);
  }

  // --- pointer and keys -----------------------------------------------------------------------

  /** @param {PointerEvent} event */
  function cellUnder(event) {
    if (!layout) return null;
    const { left, top } = canvas.getBoundingClientRect();
    return tileCellAt(layout, nTokens, event.clientX - left, event.clientY - top);
  }

  /** @param {PointerEvent} event */
  function onMove(event) {
    const found = cellUnder(event);
    if (found) read(found.head, found.cell);
  }

  /** @param {PointerEvent} event */
  function onClick(event) {
    const found = cellUnder(event);
    if (found) open(found.head);
  }

  /** @type {Record<string, [down: number, right: number]>} */
  const ARROWS = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (!layout) return;
    if (event.key === "Escape") return clear();
    const heads = [...layout.tiles.keys()],
      { selected } = view.arrangement,
      home = layout.tiles.has(selected) ? selected : heads[0];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return open(focus?.head ?? home);
    }
    const arrow = ARROWS[event.key];
    if (event.key === "Home") readLargest(heads[0]);
    else if (event.key === "End") readLargest(heads[heads.length - 1]);
    else if (!arrow) return;
    else if (!focus) readLargest(home);
    else if (event.shiftKey) {
      const [row, column] = focus.cell.map((index, axis) =>
        Math.min(Math.max(index + arrow[axis], 0), nTokens - 1),
      );
      read(focus.head, [row, column]);
    } else {
      const next = heads.indexOf(focus.head) + arrow[0] * layout.columns + arrow[1];
      if (next >= 0 && next < heads.length) readLargest(heads[next]);
    }
    event.preventDefault();
    // scroll the selected head into view
    find(".read").scrollIntoView({ block: "nearest", inline: "nearest" });
    readout.scrollIntoView({ block: "nearest" });
  }

  // --- arrangement ------------------------------------------------------------------------------

  function updateArrangement() {
    const latest = /** @type {Arrangement | undefined} */ (
      window.attentionLabArrangements?.get(map.name)
    );
    if (!latest) return;
    // until the new arrangement arrives, this may be from a model with more heads
    const order = latest.order?.filter((head) => head < headCount(map)) ?? null;
    view.arrangement = { ...latest, order };
  }

  /** @param {CustomEvent} event */
  function onArrange(event) {
    if (event.detail !== map.name) return;
    const exceptSelected = () => JSON.stringify({ ...view.arrangement, selected: null });
    const before = exceptSelected();
    updateArrangement();
    // if only the open head changed, just move its frame
    if (layout && exceptSelected() === before) drawFrames();
    else draw();
  }

  listen(canvas, "pointermove", onMove);
  listen(canvas, "pointerdown", onMove);
  listen(canvas, "click", onClick);
  listen(canvas, "pointerleave", (event) => event.pointerType === "mouse" && isReady() && clear());
  listen(canvas, "keydown", onKey);
  listen(canvas, "transitionend", draw); // the theme changed
  listen(window, "attention-lab-arrange", onArrange);
  offerTools(parentElement, listen, {
    picture,
    keys: KEYS,
    table: () => tableOfHeads(view),
    failed: (text) => {
      readout.textContent = text;
    },
  });

  find(".open").style.setProperty("--frame", OKABE_ITO.vermillion);
  find(".title").textContent = map.title;
  canvas.setAttribute(
    "aria-label",
    `${map.title}: ${map.layers} layers of ${map.heads} heads, ${nTokens} tokens. ${KEYS}`,
  );
  const bar = canvasElement(parentElement, ".bar"),
    strip = pen(bar);
  bar.width = 180;
  for (let x = 0; x < bar.width; x++) {
    strip.fillStyle = colour(x / (bar.width - 1));
    strip.fillRect(x, 0, 1, bar.height);
  }

  const stopWatching = onResize(scroll, draw);
  updateArrangement();
  inflate(map.body).then((codes) => {
    if (!isMounted) return;
    view.codes = codes;
    draw();
    markHeightFinal(parentElement);
  });

  return replaceLast(parentElement, () => {
    isMounted = false;
    stopWatching();
    forget();
  });
}
