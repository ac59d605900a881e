// @ts-check
// Small tensors drawn as nested grids. All text reaches the page through textContent or fillText.

// Milliseconds at normal speed: a sweep over all cells of a result, and the limits for each cell.
const SWEEP = 2400,
  CELL_OF_A_SWEEP = [30, 160];
const KEYS = "Use the arrow keys to move from cell to cell within a tensor.";

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  markHeightFinal(parentElement);
  const root = element(parentElement, ".tensors"),
    holder = element(parentElement, ".panels");
  const readout = element(parentElement, ".readout"),
    sumLine = element(parentElement, ".arithmetic"),
    lines = element(parentElement, ".reads"),
    moving = element(parentElement, ".moving"),
    { listen, forget } = hearing();
  const picture = unpackPanels(data);
  /** @type {TensorView} */
  const view = { picture, root, lit: null, focus: null };
  let sweep = 0; // the timer of a sweep over a result, or 0

  // ---- drawing

  /** @param {Panel} panel */
  function draw(panel) {
    const room = root.clientWidth;
    if (room === 0) return; // not laid out yet; the observer will call this again
    const context = pen(panel.canvas);
    panel.layout = panelLayout(panel, context, room, picture.decimals);
    const l = panel.layout,
      ratio = window.devicePixelRatio || 1;
    panel.canvas.width = Math.round(l.width * ratio);
    panel.canvas.height = Math.round(l.height * ratio);
    panel.canvas.style.width = `${l.width}px`;
    panel.canvas.style.height = `${l.height}px`;
    context.scale(ratio, ratio);
    paintPanel(view, panel, context);
    // position and size of the cells, and the framed ones, for programs that read the picture
    const first = cellBox(panel, 0);
    const framed = [...panel.values.keys()].filter((at) => cellIsLit(view, panel, at));
    Object.assign(panel.canvas.dataset, {
      framed: framed.join(" "),
      left: first.x,
      top: first.y,
      cellWidth: l.cellWidth,
      cellHeight: l.cellHeight,
    });
  }

  /** Draw all panels, without lines between them. */
  function drawAll() {
    picture.panels.forEach(draw);
    drawLines(view, lines, []);
  }

  // ---- reading a value

  function tell() {
    const { focus } = view;
    sumLine.textContent = focus === null ? "" : arithmetic(focus.panel, focus.at);
    if (focus === null) {
      readout.textContent = "";
      Object.assign(readout.dataset, { cell: "", value: "" });
      return;
    }
    const { panel, at } = focus;
    const index = unravelIndex(panel.shape, at);
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
    // the cell and its exact value, for programs that read the picture
    Object.assign(readout.dataset, { cell: index.join(" "), value });
    const shown = Number.isFinite(value) ? number(value, 6) : formatNumber(value, 0);
    const boxed = isBoxed(panel, at) ? `, ${panel.boxNote}` : "";
    readout.textContent = `${panel.name}[${index.map((i, axis) => real(panel, axis, i)).join(", ")}] = ${shown} (${named.join(", ")})${boxed}`;
  }

  /** @type {(panel: Panel | null, at: number) => void} */
  function light(panel, at) {
    view.focus = panel === null ? null : { panel, at };
    view.lit = panel === null ? null : sourcesOfCell(panel, at);
    tell();
    picture.panels.forEach(draw);
    const read = readBoxes(view);
    if (picture.link) {
      const detail = { link: picture.link, lit: view.lit, from: root, read };
      window.dispatchEvent(new CustomEvent("attention-lab-light", { detail }));
    }
    drawLines(view, lines, read);
  }

  // whether an event comes from another picture with the same link
  /** @type {(detail: { link: string, from: HTMLElement }) => boolean} */
  const isLinked = ({ link, from }) => link !== "" && link === picture.link && from !== root;

  // every linked picture adds the positions of the numbers that were read
  listen(window, "attention-lab-light", ({ detail }) => {
    if (!isLinked(detail)) return;
    if (sweep) stopSweep();
    view.lit = detail.lit;
    view.focus = null;
    drawAll();
    detail.read.push(...readBoxes(view));
  });

  // ---- animation: moved numbers fly in, and computed ones show their inputs one after the other

  // every linked picture adds the positions of its numbers
  listen(window, "attention-lab-where", ({ detail }) => {
    if (!isLinked(detail)) return;
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
    for (const panel of drawn) if (!panel.made) fly(view, moving, panel, found);
    if (computed) sweepOver(computed);
    const flights = moving.getAnimations({ subtree: true }).map((flight) => flight.finished);
    Promise.all(flights).then(
      () => moving.replaceChildren(),
      () => {}, // the canvas has left the page
    );
  }

  // select each number of a result in turn, with frames around its inputs
  /** @param {Panel} panel */
  function sweepOver(panel) {
    const cells = [...panel.values.keys()].filter((at) => isThere(panel, at));
    const [least, most] = CELL_OF_A_SWEEP,
      each = Math.min(Math.max(SWEEP / cells.length, least), most) / picture.speed;
    setLive("off"); // too fast for a screen reader
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
    setLive("polite");
  }

  /** @param {"polite" | "off"} live */
  function setLive(live) {
    for (const line of [readout, sumLine]) line.setAttribute("aria-live", live);
  }

  // stop the sweep when the visitor selects a number
  for (const act of ["pointermove", "pointerdown", "keydown"]) {
    listen(root, act, () => sweep && stopSweep());
  }

  /** @type {Record<string, [number, number]>} */
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  /** @type {(panel: Panel, event: KeyboardEvent) => void} */
  function onKey(panel, event) {
    if (event.key === "Escape") return light(null, 0);
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const { focus } = view;
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
      if (!panel.layout) return;
      const { left, top } = panel.canvas.getBoundingClientRect(),
        found = cellUnder(panel, event.clientX - left, event.clientY - top);
      const isFocus = view.focus?.panel === panel && view.focus.at === found;
      if (found >= 0 && !isFocus) light(panel, found);
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
  listen(holder, "scroll", () => view.focus && drawLines(view, lines, readBoxes(view)));
  readout.textContent = "";
  const showScales = () => showLegend(element(parentElement, ".key"), panelScales(view));
  showScales();
  sumLine.hidden = !picture.panels.some((panel) => panel.made);

  offerTools(parentElement, listen, {
    picture: () => pictureOfPanels(view),
    keys: KEYS,
    table: () => [
      ["tensor", "indices", "value"],
      ...picture.panels.flatMap((panel) =>
        Array.from(panel.values, (value, at) => [
          panel.name,
          unravelIndex(panel.shape, at).join(", "),
          value,
        ]),
      ),
    ],
    failed: (text) => {
      readout.textContent = text;
    },
  });

  drawAll(); // also removes lines of the previous step
  moving.replaceChildren();
  const before = root.dataset.scene,
    still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (picture.scene) root.dataset.scene = picture.scene;
  if (picture.scene && before && before !== picture.scene && !still) move();
  const stopWatching = onResize(root, () => drawAll());

  return replaceLast(parentElement, () => {
    window.clearTimeout(sweep);
    stopWatching();
    forget();
  });
}
