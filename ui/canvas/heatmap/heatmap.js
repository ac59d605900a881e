// @ts-check
// One attention head on a canvas. All text reaches the page through textContent or fillText.
// What ui/canvas/shared holds stands before this text.

const LABEL_FONT_PX = 13;
const MIN_CELL = 2,
  LARGE_CELL = 24, // of a map with few columns, where there is room
  FEW_COLUMNS = 20,
  WIDE_ENOUGH = 600,
  MAX_CELL = 48,
  LABELLED = 64, // so many columns are never too narrow for all their labels: the picture scrolls
  MAX_LABEL = 96,
  MAX_LABEL_SHARE = 0.28,
  AXIS = 18, // above the columns: what they are
  GAP = 6;
const LISTED = 4; // values of a block of aligned cells that are read out one by one
const EVENT = "attention-lab-cell";

// The places where a unit stands among the units of the rows or the columns.
/**
 * @param {number[]} units
 * @param {number} unit
 */
function placesOf(units, unit) {
  return unit < 0 ? [] : units.flatMap((other, place) => (other === unit ? [place] : []));
}

/** @typedef {[row: number, column: number]} Cell */
/** @typedef {{ rows: number[], columns: number[] }} Cells neighbours, framed as one */
/** @typedef {(index: number) => number} Edge where the cell with that number begins */
/**
 * What ui/canvas/heatmap/__init__.py packs.
 * @typedef {{
 *   rows: number, columns: number, labels: string[], rowLabels: string[], title: string,
 *   causal: boolean, lowest: number, largest: number, squareRoot: boolean, diverging: boolean,
 *   valueName: string, hiddenText: string, mayHide: boolean, link: string | null,
 *   rowUnits: number[], columnUnits: number[], merges: boolean, chosen: Cell | null,
 *   picks: boolean, captions: string[], axes: [[string, string], [string, string]],
 *   numbered: boolean, rowHeight: number | null, framedRows: number[], roomFor: string[],
 *   says: string, about?: About, values: Float32Array,
 * }} HeatmapData
 */

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement, setStateValue } = component;
  hasItsHeight(parentElement);
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    scroll = find(".scroll");
  const readout = find(".readout"),
    { listen, forget } = hearing();
  const cursor = find(".cursor");
  /** @type {HeatmapData} */
  const map = unpackFloats(data);
  const range = map.largest - map.lowest;
  // from 0 to 1 over the whole scale; the middle of a diverging one is its 0
  const share = (/** @type {number} */ value) =>
    (map.squareRoot ? Math.sqrt(value / map.largest) : (value - map.lowest) / range) || 0;
  const toned = (/** @type {number} */ part) =>
    map.diverging ? diverging(2 * part - 1, bright(rgb(ink))) : colour(part);
  /**
   * @param {number} row
   * @param {number} column
   */
  const at = (row, column) => map.values[row * map.columns + column];
  /**
   * @param {number} row
   * @param {number} column
   */
  const visible = (row, column) => !map.causal || column <= row + map.columns - map.rows;
  const inside = (/** @type {Cell} */ cell) => cell[0] < map.rows && cell[1] < map.columns;
  /**
   * @param {number} row
   * @param {number} column
   */
  const single = (row, column) => ({ rows: [row], columns: [column] });
  const base = document.createElement("canvas"); // cells and hatching, drawn once for a size
  // The cell that Python has chosen, the cell pointed at here, the cells aligned with one pointed
  // at in a linked map: each as lists of rows and columns.
  const pinned = map.chosen && inside(map.chosen) ? single(...map.chosen) : null;
  const rowsFramed = map.framedRows.length
    ? { rows: map.framedRows, columns: [0, map.columns - 1] }
    : null;
  let pointed = canvas.matches(":focus") ? pinned : null;
  /** @type {Cells | null} */
  let aligned = null;
  /** @type {ReturnType<typeof measure>} none before the picture has a place on the page */
  let layout;
  let ink = getComputedStyle(canvas).color;

  const middle = map.squareRoot ? map.largest / 4 : (map.lowest + map.largest) / 2;
  find(".title").textContent = map.title;
  find(".mark").style.background = QUANTITIES[`${map.valueName}s`] ?? "";
  find(".low").textContent = number(map.lowest, 3);
  find(".middle").textContent = number(middle, 3);
  find(".high").textContent = (map.diverging ? "+" : "") + number(map.largest, 3);
  find(".kind").textContent = map.squareRoot ? "square-root colours" : "";
  find(".hatched").textContent = map.causal ? "hatched: the query may not look ahead" : "";
  const crossed = find(".absent"),
    someCrossed = map.values.some(Number.isNaN);
  crossed.textContent = someCrossed || map.mayHide ? `crossed out: ${map.hiddenText}` : "";
  crossed.style.visibility = someCrossed ? "" : "hidden";
  find(".heatmap").classList.toggle("roomy", map.mayHide);
  canvas.style.cursor = map.picks ? "pointer" : "";
  canvas.setAttribute(
    "aria-label",
    `${map.title}: ${map.rows} ${map.axes[0][1]} by ${map.columns} ${map.axes[1][1]}, ` +
      `${map.valueName}s from ` +
      `${number(map.lowest, 3)} to ${number(map.largest, 3)}. Use the arrow keys to read a cell` +
      (map.picks ? ", Enter to choose it." : "."),
  );

  // ---- layout, in CSS pixels

  function measure() {
    const context = pen(canvas);
    context.font = `${LABEL_FONT_PX}px ${FAMILY}`;
    const longest = Math.min(MAX_LABEL, scroll.clientWidth * MAX_LABEL_SHARE);
    const room = (/** @type {string[]} */ texts) => {
      const widths = texts.map((text) => context.measureText(text).width);
      return Math.ceil(Math.min(Math.max(...widths), longest)) + GAP;
    };
    const widest = room(
      [`${map.axes[0][0]} ↓`].concat(map.rowLabels, map.rowHeight ? map.roomFor : map.labels),
    );
    // half a label may stick out beyond the last cell
    const margin = Math.ceil(LABEL_FONT_PX / 2) + 1;
    const label = widest,
      fitting = (scroll.clientWidth - label - margin) / map.columns;
    const few = map.columns < FEW_COLUMNS && scroll.clientWidth >= WIDE_ENOUGH,
      least = few
        ? LARGE_CELL
        : map.columns <= LABELLED && !map.numbered
          ? LABEL_FONT_PX
          : MIN_CELL;
    const cell = Math.min(Math.max(fitting, least), MAX_CELL);
    const widestColumn = Math.max(...map.labels.map((text) => context.measureText(text).width)),
      upright = widestColumn <= cell - 4, // straight labels fit
      top = AXIS + (upright ? LABEL_FONT_PX + GAP : room(map.labels));
    // labels that would overlap are thinned out; the readout names every token
    const height = map.rowHeight || cell;
    const every = (/** @type {number} */ size) => Math.ceil(LABEL_FONT_PX / size);
    const right = label + cell * map.columns,
      bottom = top + height * map.rows;
    return {
      label,
      top,
      upright,
      cell,
      row: height,
      everyColumn: every(cell),
      everyRow: every(height),
      right,
      bottom,
      width: right + margin,
      height: bottom + margin,
    };
  }

  function arrange() {
    if (scroll.clientWidth === 0) return; // not laid out yet: the observer calls again
    layout = measure();
    ink = getComputedStyle(canvas).color;
    const ratio = window.devicePixelRatio || 1;
    // where the cells lie, in CSS pixels, for whoever reads the picture by program
    const { label: origin, cell, top, row } = layout;
    Object.assign(canvas.dataset, { origin, cell, top, row });
    for (const one of [canvas, base]) {
      one.width = Math.round(layout.width * ratio);
      one.height = Math.round(layout.height * ratio);
    }
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    const context = pen(base);
    context.scale(ratio, ratio);
    cells(context, ratio);
    bar();
    draw();
  }

  // ---- drawing

  function draw() {
    if (!layout) return;
    const ratio = window.devicePixelRatio || 1;
    const context = pen(canvas);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(base, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const shown = pointed || aligned || pinned;
    labels(context, shown);
    if (rowsFramed) frame(context, rowsFramed);
    if (pinned && pinned !== shown) frame(context, pinned);
    if (shown?.rows.length && shown.columns.length) {
      if (shown.rows.length === 1 && shown.columns.length === 1) lines(context, shown);
      frame(context, shown);
    }
  }

  // Cells without gaps as pixels; colours in 1024 steps, which no screen can tell apart.
  class CellImage {
    /**
     * @param {Edge} edgeX
     * @param {Edge} edgeY
     * @param {number} ratio
     */
    constructor(edgeX, edgeY, ratio) {
      this.ratio = ratio;
      this.corner = [edgeX(0), edgeY(0)];
      /**
       * @param {Edge} edge
       * @param {number} count
       */
      const places = (edge, count) =>
        Array.from({ length: count + 1 }, (_, i) => Math.round((edge(i) - edge(0)) * ratio));
      this.x = places(edgeX, map.columns);
      this.y = places(edgeY, map.rows);
      this.image = new ImageData(this.x[map.columns] || 1, this.y[map.rows] || 1);
      this.pixels = new Uint32Array(this.image.data.buffer);
      /** @type {number[]} */
      this.tones = [];
    }

    /** @param {number} part */
    tone(part) {
      const step = Math.round(Math.min(Math.max(part, 0), 1) * 1023);
      if (this.tones[step] === undefined) {
        const [r, g, b] = rgb(toned(step / 1023));
        this.tones[step] = new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0];
      }
      return this.tones[step];
    }

    /**
     * @param {number} row
     * @param {number} column
     * @param {number} part
     */
    fill(row, column, part) {
      const tone = this.tone(part),
        { width } = this.image;
      for (let y = this.y[row]; y < this.y[row + 1]; y++) {
        this.pixels.fill(tone, y * width + this.x[column], y * width + this.x[column + 1]);
      }
    }

    /** @param {Pen} context */
    putOn(context) {
      const drawn = document.createElement("canvas"),
        { width, height } = this.image;
      [drawn.width, drawn.height] = [width, height];
      pen(drawn).putImageData(this.image, 0, 0);
      context.imageSmoothingEnabled = false; // every pixel lies on one of the canvas
      const [x, y] = this.corner;
      context.drawImage(drawn, x, y, width / this.ratio, height / this.ratio);
    }
  }

  /**
   * @param {Pen} context
   * @param {number} ratio
   */
  function cells(context, ratio) {
    const { label, top, cell, row: height } = layout;
    // cells have fractional sizes; their edges lie on whole device pixels, so that none is blurred
    const edgeX = (/** @type {number} */ index) =>
      Math.round((label + index * cell) * ratio) / ratio;
    const edgeY = (/** @type {number} */ index) =>
      Math.round((top + index * height) * ratio) / ratio;
    const gap = cell >= 8 ? 1 : 0;
    /** @type {Cell[]} */
    const absent = [];
    /**
     * @param {number} row
     * @param {number} column
     * @param {string} tone
     */
    const rectangle = (row, column, tone) => {
      const x = edgeX(column),
        y = edgeY(row);
      context.fillStyle = tone;
      context.fillRect(x, y, edgeX(column + 1) - x - gap, edgeY(row + 1) - y - gap);
    };
    // thousands of small cells are painted as one image; a saved SVG keeps its rectangles
    const image = gap || context instanceof SvgContext ? null : new CellImage(edgeX, edgeY, ratio);
    for (let row = 0; row < map.rows; row++) {
      for (let column = 0; column < map.columns; column++) {
        if (!visible(row, column)) continue;
        const value = at(row, column);
        if (Number.isNaN(value)) absent.push([row, column]);
        else if (image) image.fill(row, column, share(value));
        else rectangle(row, column, toned(share(value)));
      }
    }
    if (image) image.putOn(context);
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.globalAlpha = 0.18;
    context.beginPath();
    if (map.causal) hatch(context);
    for (const [row, column] of absent) {
      const x = label + column * cell,
        y = top + row * height;
      const right = x + cell - gap,
        bottom = y + height - gap;
      context.moveTo(x, y);
      context.lineTo(right, bottom);
      context.moveTo(right, y);
      context.lineTo(x, bottom);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  // Slanted lines over the forbidden triangle: each from where it enters it to the upper or right
  // end of the map.
  /** @param {Pen} context */
  function hatch(context) {
    const { label, top, cell, right, bottom } = layout;
    for (let sum = label + top; sum < right + bottom; sum += 7) {
      // the line x + y = sum
      /** @type {number | null} */
      let from = null;
      for (let row = map.rows - 1; row >= 0 && from === null; row--) {
        const first = label + Math.max(row + map.columns - map.rows + 1, 0) * cell;
        const above = top + row * cell;
        const x = Math.max(sum - above - cell, first);
        if (x <= Math.min(sum - above, right)) from = x;
      }
      const end = Math.min(sum - top, right);
      if (from === null || end <= from) continue;
      context.moveTo(from, sum - from);
      context.lineTo(end, sum - end);
    }
  }

  /**
   * @param {Pen} context
   * @param {Cells | null} shown
   */
  function labels(context, shown) {
    const { label, top, cell, row: height, everyColumn, everyRow } = layout;
    context.font = LABEL;
    context.textBaseline = "middle";
    context.fillStyle = ink;
    axes(context);
    // a thinned-out label gives way to one beside it that is shown
    /**
     * @param {string[]} texts
     * @param {number[]} wanted
     * @param {number} start
     * @param {number} size
     * @param {number} every
     * @param {number} room
     * @param {(text: string, place: number) => void} write
     */
    const each = (texts, wanted, start, size, every, room, write) => {
      const yields = (/** @type {number} */ i) =>
        wanted.some((other) => Math.abs(i - other) < every);
      for (let i = 0; i < texts.length; i++) {
        const named = wanted.includes(i);
        if (!named && (i % every || yields(i))) continue;
        context.globalAlpha = !shown || named ? 1 : 0.75;
        write(shorten(context, texts[i], room), start + (i + 0.5) * size);
      }
    };
    context.textAlign = "right";
    const rowTexts = map.rowLabels.slice(0, map.rows),
      side = label - GAP,
      above = top - GAP,
      long = layout.upright ? cell : above - AXIS;
    each(rowTexts, shown ? shown.rows : [], top, height, everyRow, side, (text, place) =>
      context.fillText(text, side, place),
    );
    context.textAlign = layout.upright ? "center" : "left";
    each(map.labels, shown ? shown.columns : [], label, cell, everyColumn, long, (text, place) => {
      if (layout.upright) return context.fillText(text, place, above - LABEL_FONT_PX / 2);
      context.save();
      context.translate(place, above);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    });
    context.globalAlpha = 1;
  }

  // What a row and a column are, in the corner: "query ↓" above the rows, "key →" above the columns.
  /** @param {Pen} context */
  function axes(context) {
    const [[row], [column]] = map.axes;
    context.globalAlpha = 0.75;
    context.textAlign = "right";
    context.fillText(
      shorten(context, `${row} ↓`, layout.label - GAP),
      layout.label - GAP,
      layout.top - GAP - LABEL_FONT_PX / 2,
    );
    context.textAlign = "left";
    context.fillText(`${column} →`, layout.label, LABEL_FONT_PX / 2 + 1);
    context.globalAlpha = 1;
  }

  // A rectangle from the first to the last of the rows and columns: aligned ones are neighbours.
  /** @param {Cells} cells */
  function box({ rows, columns }) {
    const { label, top, cell, row: height } = layout;
    const first = { row: Math.min(...rows), column: Math.min(...columns) };
    return {
      x: label + first.column * cell,
      y: top + first.row * height,
      width: (Math.max(...columns) - first.column + 1) * cell,
      height: (Math.max(...rows) - first.row + 1) * height,
    };
  }

  // Lines along the row and the column of one cell.
  /**
   * @param {Pen} context
   * @param {Cells} shown
   */
  function lines(context, shown) {
    const { label, top, cell, row: height, right, bottom } = layout,
      { x, y } = box(shown);
    context.strokeStyle = ink;
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    context.strokeRect(label, y, right - label, height);
    context.strokeRect(x, top, cell, bottom - top);
    context.globalAlpha = 1;
  }

  // A frame in two tones that shows on every colour.
  /**
   * @param {Pen} context
   * @param {Cells} shown
   */
  function frame(context, shown) {
    const { x, y, width, height } = box(shown);
    for (const [tone, thick] of /** @type {const} */ ([
      ["black", 4],
      ["white", 2],
    ])) {
      context.strokeStyle = tone;
      context.lineWidth = thick;
      context.strokeRect(x, y, width, height);
    }
  }

  function bar() {
    const strip = canvasElement(parentElement, ".bar"),
      context = pen(strip);
    strip.width = 180;
    for (let x = 0; x < strip.width; x++) {
      context.fillStyle = toned(x / (strip.width - 1));
      context.fillRect(x, 0, 1, strip.height);
    }
  }

  // ---- the map as it is saved: nothing is pointed at in it

  /**
   * @param {Pen} context
   * @param {number} ratio
   */
  function picture(context, ratio) {
    cells(context, ratio);
    labels(context, pinned);
    if (rowsFramed) frame(context, rowsFramed);
    if (pinned) frame(context, pinned);
  }

  // ---- reading a value

  /**
   * @param {[string, string]} kind
   * @param {number[]} places
   * @param {string[]} texts
   */
  function named(kind, places, texts) {
    if (places.length === 1) {
      const place = places[0],
        text = texts[place];
      // its label is its number
      const bare = map.numbered && texts.every((label, index) => label === String(index));
      return bare ? `${kind[0]} ${place}` : `“${isolated(text)}”`;
    }
    const last = places[places.length - 1];
    const quoted = `“${isolated(texts[places[0]])}” … “${isolated(texts[last])}”`;
    return quoted;
  }

  const isWeight = map.valueName === "weight";
  const written = (/** @type {number} */ value) =>
    isWeight ? percent(value) : (map.diverging && value > 0 ? "+" : "") + number(value, 4);

  /** @type {(cells: Cells) => number[] | null} what cells hold that are drawn; null: all are masked */
  function valuesOf({ rows, columns }) {
    const seen = rows.flatMap((row) =>
      columns.filter((column) => visible(row, column)).map((column) => at(row, column)),
    );
    return seen.length ? seen.filter((value) => !Number.isNaN(value)) : null;
  }

  /** @type {(cells: Cells) => number | ""} one cell's value, or what those of a block add up to */
  function exact(cells) {
    const values = valuesOf(cells) ?? [],
      single = cells.rows.length * cells.columns.length === 1;
    if (!values.length || !(single || map.merges)) return "";
    return single ? values[0] : values.reduce((a, b) => a + b, 0) / cells.rows.length;
  }

  /** @param {Cells} cells */
  function read(cells) {
    const { rows, columns } = cells;
    const names = `${named(map.axes[0], rows, map.rowLabels)} → ${named(map.axes[1], columns, map.labels)}`;
    const values = valuesOf(cells);
    if (!values) return `${names}: masked, the query may not look ahead`;
    if (!values.length) return `${names}: ${map.hiddenText}`;
    if (rows.length * columns.length === 1)
      return `${names}: ${isWeight ? "" : `${map.valueName} `}${written(values[0])}`;
    const listed = values.slice(0, LISTED).map(written).join(", ");
    const more = values.length > LISTED ? ` … (${values.length} in all)` : "";
    const merged = map.merges
      ? `; summed over keys, averaged over queries: ${written(Number(exact(cells)))}`
      : "";
    return `${names}: ${map.valueName}s ${listed}${more}${merged}`;
  }

  function tell() {
    const shown = pointed || aligned || pinned;
    // where the readout is, and its exact number, for whoever reads the picture by program
    const cell = `${shown?.rows[0] ?? -1} ${shown?.columns[0] ?? -1}`;
    Object.assign(readout.dataset, { cell, value: shown ? exact(shown) : "" });
    if (!shown) readout.textContent = "";
    else if (!shown.rows.length || !shown.columns.length) {
      readout.textContent = "The cell pointed at has no partner in this map.";
    } else readout.textContent = read(shown);
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
      window.dispatchEvent(new CustomEvent(EVENT, { detail }));
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

  /**
   * @param {number} row
   * @param {number} column
   */
  const isPointed = (row, column) =>
    pointed !== null && pointed.rows[0] === row && pointed.columns[0] === column;

  /** @type {(event: PointerEvent) => Cell | null} */
  function cellUnder(event) {
    if (!layout) return null;
    const bounds = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left - layout.label) / layout.cell);
    const row = Math.floor((event.clientY - bounds.top - layout.top) / layout.row);
    const outside = row < 0 || column < 0 || row >= map.rows || column >= map.columns;
    return outside ? null : [row, column];
  }

  /** @param {PointerEvent} event */
  function onPointer(event) {
    const cell = cellUnder(event);
    if (cell && !isPointed(...cell)) point(single(...cell));
  }

  /** @param {PointerEvent} event */
  function onClick(event) {
    const cell = cellUnder(event);
    if (map.picks && cell) setStateValue("cell", cell);
  }

  const FAR = Infinity;
  /** @type {Record<string, [number, number]>} */
  const MOVES = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-FAR, 0],
    PageDown: [FAR, 0],
    Home: [0, -FAR],
    End: [0, FAR],
  };
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Escape") return point(null);
    if (event.key === "Enter" && map.picks && pointed) {
      event.preventDefault();
      return setStateValue("cell", [pointed.rows[0], pointed.columns[0]]);
    }
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    /**
     * @param {number} value
     * @param {number} size
     */
    const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
    // the first key press only shows where the reading begins
    const [down, right] = pointed ? move : [0, 0];
    const from = pointed || pinned || single(map.framedRows[0] ?? 0, 0);
    point(
      single(clamp(from.rows[0] + down, map.rows), clamp(from.columns[0] + right, map.columns)),
    );
    follow();
  }

  // Bring the cell pointed at into view, whatever scrolls around the picture.
  function follow() {
    if (!pointed) return;
    const { x, y } = box(pointed);
    cursor.style.left = `${x}px`;
    cursor.style.top = `${y}px`;
    cursor.style.width = `${layout.cell}px`;
    cursor.style.height = `${layout.row}px`;
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
    readout.scrollIntoView({ block: "nearest" });
  }

  listen(canvas, "pointermove", onPointer);
  listen(canvas, "pointerdown", onPointer);
  listen(canvas, "pointerleave", (event) => event.pointerType === "mouse" && point(null));
  listen(canvas, "click", onClick);
  listen(canvas, "keydown", onKey);
  listen(canvas, "transitionend", arrange); // the theme changed
  listen(window, EVENT, onLinked);

  offerTools(parentElement, listen, {
    keys:
      "Arrow keys go from cell to cell, Escape ends that." +
      (map.picks ? " A click or Enter chooses a cell." : ""),
    table: () => [
      [map.axes[0][0], ...map.labels],
      ...map.rowLabels.slice(0, map.rows).map((label, row) => [
        label,
        ...map.labels.map((_, column) => exact(single(row, column))), // none where none is drawn
      ]),
    ],
    picture: () =>
      layout && {
        width: layout.width,
        height: layout.height,
        draw: picture,
        element: canvas,
        title: map.title,
        says: map.says,
        about: map.about,
        kind: `${map.valueName}s`,
        notes: map.captions,
        scales: [
          {
            tone: toned,
            low: find(".low").textContent,
            middle: find(".middle").textContent,
            high: find(".high").textContent,
            text: [`${map.valueName}s`, find(".kind").textContent].filter(Boolean).join(", "),
          },
        ],
        words: [find(".hatched").textContent, someCrossed ? crossed.textContent : ""],
      },
    failed: (text) => {
      readout.textContent = text;
    },
  });

  tell();
  arrange();
  const stopWatching = onNewWidth(scroll, arrange);

  return inPlaceOfTheLast(parentElement, () => {
    stopWatching();
    forget();
  });
}
