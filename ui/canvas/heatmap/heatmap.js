// @ts-check
// One attention head on a canvas. Cells are selected by pointer, by keyboard, or in a linked map. All
// text reaches the page through textContent or fillText. The other scripts in this folder and in
// ui/canvas/shared come before this one.

const LINKED_CELL = "attention-lab-cell";

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement, setStateValue } = component;
  markHeightFinal(parentElement);
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    scroll = find(".scroll");
  const readout = find(".readout"),
    cursor = find(".cursor"),
    { listen, forget } = hearing();
  /** @type {HeatmapData} */
  const map = unpackFloats(data);
  const inside = (/** @type {Cell} */ cell) => cell[0] < map.rows && cell[1] < map.columns;
  const pinned = map.chosen && inside(map.chosen) ? oneCell(...map.chosen) : null;
  const keptRows = map.framedRows.length
    ? { rows: map.framedRows, columns: [0, map.columns - 1] }
    : null;
  const base = document.createElement("canvas"); // cells and hatching, painted once per size
  let pointed = canvas.matches(":focus") ? pinned : null;
  /** @type {Cells | null} the cells aligned with the selected cell of a linked map */
  let aligned = null;
  /** @type {MapLayout | undefined} undefined before the figure is laid out */
  let layout;
  let ink = getComputedStyle(canvas).color;

  const shown = () => pointed || aligned || pinned;

  function arrange() {
    if (scroll.clientWidth === 0) return; // not laid out yet; the observer will call this again
    layout = mapLayout(map, pen(canvas), scroll.clientWidth);
    ink = getComputedStyle(canvas).color;
    const ratio = window.devicePixelRatio || 1;
    // cell positions in CSS pixels, for programs that read the picture
    const { left: origin, width: cell, top, height: row } = layout.grid;
    Object.assign(canvas.dataset, { origin, cell, top, row });
    for (const one of [canvas, base]) {
      one.width = Math.round(layout.width * ratio);
      one.height = Math.round(layout.height * ratio);
    }
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    const context = pen(base);
    context.scale(ratio, ratio);
    paintCells(context, map, layout, ink, ratio);
    paintMapBar(parentElement, colourScale(map, ink));
    draw();
  }

  function draw() {
    if (!layout) return;
    const ratio = window.devicePixelRatio || 1;
    const context = pen(canvas);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(base, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintAround(context, layout, shown());
  }

  /** @type {(context: Pen, layout: MapLayout, cells: Cells | null) => void} */
  function paintAround(context, layout, cells) {
    paintLabels(context, map, layout, ink, cells);
    if (keptRows) frameBox(context, boxAround(layout.grid, keptRows));
    if (pinned && pinned !== cells) frameBox(context, boxAround(layout.grid, pinned));
    if (!cells?.rows.length || !cells.columns.length) return;
    const box = boxAround(layout.grid, cells),
      single = cells.rows.length * cells.columns.length === 1;
    if (single) frameRowAndColumn(context, layout, box, ink);
    frameBox(context, box);
  }

  function tell() {
    const cells = shown();
    // the cell and its exact value, for programs that read the picture
    const cell = `${cells?.rows[0] ?? -1} ${cells?.columns[0] ?? -1}`;
    Object.assign(readout.dataset, { cell, value: cells ? exactValue(map, cells) : "" });
    if (!cells) readout.textContent = "";
    else if (!cells.rows.length || !cells.columns.length) {
      readout.textContent = "The selected cell has no partner in this map.";
    } else readout.textContent = describeCells(map, cells);
  }

  /** @param {Cells | null} cell */
  function point(cell) {
    pointed = cell;
    aligned = null;
    if (map.link) {
      const units = cell && {
        row: map.rowUnits[cell.rows[0]],
        column: map.columnUnits[cell.columns[0]],
      };
      const detail = { link: map.link, units, from: canvas };
      window.dispatchEvent(new CustomEvent(LINKED_CELL, { detail }));
    }
    tell();
    draw();
  }

  /** @param {CustomEvent} event */
  function onLinked({ detail }) {
    if (!map.link || detail.link !== map.link || detail.from === canvas) return;
    pointed = null;
    aligned = detail.units && {
      rows: placesOf(map.rowUnits, detail.units.row),
      columns: placesOf(map.columnUnits, detail.units.column),
    };
    tell();
    draw();
  }

  /** @param {PointerEvent} event */
  function cellUnder(event) {
    const { left, top } = canvas.getBoundingClientRect();
    return layout ? cellAt(layout.grid, event.clientX - left, event.clientY - top) : null;
  }

  /** @param {PointerEvent} event */
  function onPointer(event) {
    const cell = cellUnder(event);
    const same = cell && pointed?.rows[0] === cell[0] && pointed.columns[0] === cell[1];
    if (cell && !same) point(oneCell(...cell));
  }

  /** @param {PointerEvent} event */
  function onClick(event) {
    const cell = cellUnder(event);
    if (map.picks && cell) setStateValue("cell", cell);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Escape") return point(null);
    if (event.key === "Enter" && map.picks && pointed) {
      event.preventDefault();
      return setStateValue("cell", [pointed.rows[0], pointed.columns[0]]);
    }
    const move = CELL_MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const from = pointed || pinned || oneCell(map.framedRows[0] ?? 0, 0);
    // the first key press only selects the starting cell
    point(cellBeside(map, from, pointed ? move : [0, 0]));
    follow();
  }

  // Scroll the selected cell into view.
  function follow() {
    if (!pointed || !layout) return;
    const { x, y, width, height } = boxAround(layout.grid, pointed);
    Object.assign(cursor.style, {
      left: `${x}px`,
      top: `${y}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
    readout.scrollIntoView({ block: "nearest" });
  }

  listen(canvas, "pointermove", onPointer);
  listen(canvas, "pointerdown", onPointer);
  listen(canvas, "pointerleave", (event) => event.pointerType === "mouse" && point(null));
  listen(canvas, "click", onClick);
  listen(canvas, "keydown", onKey);
  listen(canvas, "transitionend", arrange); // the theme changed
  listen(window, LINKED_CELL, onLinked);

  function picture() {
    if (!layout) return null;
    const saved = layout,
      { low, middle, high, kind } = scaleTexts(map);
    return {
      width: saved.width,
      height: saved.height,
      draw: (/** @type {Pen} */ context, /** @type {number} */ ratio) => {
        paintCells(context, map, saved, ink, ratio);
        paintAround(context, saved, pinned); // a saved picture has no selected cell
      },
      element: canvas,
      title: map.title,
      says: map.says,
      about: map.about,
      kind: `${map.valueName}s`,
      notes: map.captions,
      scales: [
        {
          tone: colourScale(map, ink),
          low,
          middle,
          high,
          text: [`${map.valueName}s`, kind].filter(Boolean).join(", "),
        },
      ],
      words: [hatchedText(map), crossedText(map)],
    };
  }

  offerTools(parentElement, listen, {
    keys:
      "Use the arrow keys to move from cell to cell, and Escape to stop." +
      (map.picks ? " Click a cell or press Enter to choose it." : ""),
    table: () => [
      [map.axes[0][0], ...map.labels],
      ...map.rowLabels
        .slice(0, map.rows)
        .map((label, row) => [
          label,
          ...map.labels.map((_, column) => exactValue(map, oneCell(row, column))),
        ]),
    ],
    picture,
    failed: (text) => {
      readout.textContent = text;
    },
  });

  showMapTexts(parentElement, map);
  tell();
  arrange();
  const stopWatching = onResize(scroll, arrange);

  return replaceLast(parentElement, () => {
    stopWatching();
    forget();
  });
}
