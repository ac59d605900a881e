// @ts-check
// Heads drawn as lines from queries to keys. All text reaches the page through textContent or fillText.

const MAX_ROW_HEIGHT = 16,
  LOWEST_ROW = 12, // for long texts, so that more tokens fit on the screen
  ROWS_HEIGHT = 540,
  TOP = 24,
  MARK = 8,
  GAP = 6,
  MARGIN = 4,
  MAX_LABEL = 150,
  MAX_LABEL_SHARE = 0.27;
const BLOCKS = 26; // width of the blocks next to the labels, which show a selected token's weights
const MIN_OPACITY = 1 / 255; // fainter lines would be invisible
const MAX_LINES = 1200; // drawn while no token is selected; more are slow and look solid
const LISTED = 5;
const MAX_PIXELS = 12e6; // of the canvas; long texts get a lower resolution

// The shortest decimal number that identifies this float32.
/** @param {number} value */
function formatExact(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return minus(String(Number(text)));
  }
  return minus(String(Number(value.toPrecision(9))));
}

/** @typedef {"query" | "key"} Side */
/** @typedef {{ side: Side, index: number }} Token */
/** @typedef {{ colour: string, text: string }} Row */
/**
 * Packed by ui/canvas/lines/__init__.py.
 * @typedef {{
 *   names: string[], queries: number, keys: number, labels: string[], title: string,
 *   causal: boolean, value: string, largest: number, says: string, about?: About, values: Float32Array,
 * }} LinesData
 */

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  markHeightFinal(parentElement);
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const figure = find(".lines"),
    canvas = canvasElement(parentElement, ".scroll canvas");
  const scroll = find(".scroll"),
    readout = find(".readout"),
    cursor = find(".cursor");
  const { listen, forget } = hearing();
  /** @type {LinesData} */
  const map = unpackFloats(data);
  const shift = map.keys - map.queries; // the queries are the last tokens
  const sides = { query: { count: map.queries, first: shift }, key: { count: map.keys, first: 0 } };
  const names = map.names.map((name, head) => ({ name, head, colour: headColour(head) }));
  // the heads that are off are stored on the element, so that they survive new data
  const off = new Set(JSON.parse(figure.dataset.off || "[]"));
  const shown = () => names.filter(({ name }) => !off.has(name));
  /** @type {ReturnType<typeof measure>} undefined before the figure is laid out */
  let layout;
  /** @type {Token | null} */
  let chosen = null;
  /** @type {Token | null} */
  let kept = null;
  /** @type {HTMLCanvasElement | null} */
  let everything = null;

  /**
   * @param {number} head
   * @param {number} query
   * @param {number} key
   */
  const at = (head, query, key) => map.values[(head * map.queries + query) * map.keys + key];
  const share = (/** @type {number} */ value) => Math.min(value / map.largest, 1);
  /**
   * @param {number} query
   * @param {number} key
   */
  const visible = (query, key) => !map.causal || key <= query + shift;
  /** @type {(side: Side) => Side} */
  const other = (side) => (side === "query" ? "key" : "query");
  /** @type {(side: Side, index: number, partner: number) => [query: number, key: number]} */
  const pair = (side, index, partner) => (side === "query" ? [index, partner] : [partner, index]);
  const ROW = Math.min(Math.max(Math.floor(ROWS_HEIGHT / map.keys), LOWEST_ROW), MAX_ROW_HEIGHT);
  const height = TOP + map.keys * ROW + 4;
  /**
   * @param {Side} side
   * @param {number} index
   */
  const middle = (side, index) => TOP + (index + sides[side].first + 0.5) * ROW;
  /**
   * @param {Side} side
   * @param {number} index
   */
  const label = (side, index) => map.labels[index + sides[side].first];
  const drawable = (/** @type {number} */ value) => value >= MIN_OPACITY * map.largest; // false for NaN

  // Positions are counted over all tokens, even if the queries are only the last tokens.
  /**
   * @param {Side} side
   * @param {number} index
   */
  const named = (side, index) => `${index + sides[side].first} “${isolated(label(side, index))}”`;

  // ---- drawing -----------------------------------------------------------------------------

  function measure() {
    const context = pen(canvas);
    context.font = LABEL;
    const width = scroll.clientWidth;
    const widest = Math.max(
      context.measureText("queries").width,
      ...map.labels.map((text) => context.measureText(text).width),
    );
    const room = Math.ceil(Math.min(widest, MAX_LABEL, width * MAX_LABEL_SHARE));
    const short = map.labels.map((text) => shorten(context, text, room));
    const left = MARGIN + room + GAP;
    return { width, room, short, left, right: width - left };
  }

  // The offset of a head's line, so that lines between the same two tokens don't overlap.
  /**
   * @param {number} place
   * @param {number} count
   */
  function lane(place, count) {
    return count < 2 ? 0 : (place / (count - 1) - 0.5) * Math.min(ROW - 6, 2.5 * (count - 1));
  }

  // `blocks`: the column with blocks next to its labels; lines end before them.
  /**
   * @param {Pen} context
   * @param {number} query
   * @param {number} key
   * @param {number} strength
   * @param {number} offset
   * @param {Side} [blocks]
   */
  function line(context, query, key, strength, offset, blocks) {
    context.globalAlpha = strength;
    context.lineWidth = 0.75 + 2.25 * strength;
    context.beginPath();
    context.moveTo(
      layout.left + (blocks === "query" ? BLOCKS : 0),
      middle("query", query) + offset,
    );
    context.lineTo(layout.right - (blocks === "key" ? BLOCKS : 0), middle("key", key) + offset);
    context.stroke();
  }

  // The smallest value that is drawn while no token is selected.
  function limits() {
    /** @type {number[]} */
    const found = [];
    for (const { head } of shown()) {
      for (let query = 0; query < map.queries; query++) {
        for (let key = 0; key < map.keys && visible(query, key); key++) {
          if (drawable(at(head, query, key))) found.push(at(head, query, key));
        }
      }
    }
    if (found.length <= MAX_LINES) return { from: MIN_OPACITY * map.largest, of: found.length };
    return { from: Float32Array.from(found).sort()[found.length - MAX_LINES], of: found.length };
  }

  /** @param {Pen} context */
  function allLines(context) {
    const heads = shown(),
      { from } = limits();
    heads.forEach(({ head, colour }, place) => {
      context.strokeStyle = colour;
      for (let query = 0; query < map.queries; query++) {
        for (let key = 0; key < map.keys && visible(query, key); key++) {
          const value = at(head, query, key);
          if (value >= from) line(context, query, key, share(value), lane(place, heads.length));
        }
      }
    });
    context.globalAlpha = 1;
  }

  // The lines of one token, plus one block per head next to each partner, as opaque as the line.
  /** @type {(context: Pen, token: Token) => void} */
  function linesOf(context, { side, index }) {
    const heads = shown(),
      there = other(side);
    const wide = (BLOCKS - 4) / Math.max(heads.length, 1);
    const start = there === "key" ? layout.right - BLOCKS + 4 : layout.left;
    heads.forEach(({ head, colour }, place) => {
      context.strokeStyle = context.fillStyle = colour;
      for (let partner = 0; partner < sides[there].count; partner++) {
        const [query, key] = pair(side, index, partner);
        const value = at(head, query, key);
        if (!visible(query, key) || !drawable(value)) continue;
        line(context, query, key, share(value), lane(place, heads.length), there);
        context.fillRect(
          start + place * wide,
          middle(there, partner) - 6,
          wide - (wide > 4 ? 1 : 0),
          12,
        );
      }
    });
    context.globalAlpha = 1;
  }

  /**
   * @param {Pen} context
   * @param {string} text
   */
  function labels(context, text) {
    const lit = kept || chosen;
    context.font = LABEL;
    context.textBaseline = "middle";
    context.fillStyle = text;
    for (const side of /** @type {const} */ (["query", "key"])) {
      const inner = MARGIN + layout.room;
      const x = side === "query" ? inner : layout.width - inner;
      context.textAlign = side === "query" ? "right" : "left";
      context.globalAlpha = 1;
      context.font = STRONG_LABEL;
      const name = side === "query" ? "queries" : "keys";
      context.fillText(name, x, TOP / 2);
      context.fillStyle = QUANTITIES[name];
      context.fillRect(side === "query" ? x + 4 : x - 4 - MARK, (TOP - MARK) / 2, MARK, MARK);
      context.fillStyle = text;
      context.font = LABEL;
      for (let index = 0; index < sides[side].count; index++) {
        const marked = [chosen, kept].some((t) => t && t.side === side && t.index === index);
        context.globalAlpha = lit && lit.side === side && !marked ? 0.7 : 1;
        context.fillText(layout.short[index + sides[side].first], x, middle(side, index));
        if (marked) frame(context, side, index, text);
      }
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {Pen} context
   * @param {Side} side
   * @param {number} index
   * @param {string} text
   */
  function frame(context, side, index, text) {
    const wide = layout.room + 5;
    const x = side === "query" ? 1 : layout.width - wide - 1;
    context.strokeStyle = text;
    context.lineWidth = kept && kept.side === side && kept.index === index ? 2 : 1;
    context.strokeRect(x, middle(side, index) - ROW / 2 + 1, wide, ROW - 2);
  }

  /**
   * @param {Pen} context
   * @param {(context: Pen) => void} lines
   */
  function paint(context, lines) {
    context.clearRect(0, 0, layout.width, height);
    const lit = kept || chosen;
    if (lit) linesOf(context, lit);
    else lines(context);
    labels(context, getComputedStyle(canvas).color);
  }

  /**
   * @param {HTMLCanvasElement} target
   * @param {number} ratio
   */
  function sized(target, ratio) {
    target.width = Math.round(layout.width * ratio);
    target.height = Math.round(height * ratio);
    const context = pen(target);
    context.scale(ratio, ratio);
    return context;
  }

  // All lines are drawn once per width and selection of heads, and then reused.
  /**
   * @param {Pen} context
   * @param {number} ratio
   */
  function allLinesOnce(context, ratio) {
    if (!everything) {
      everything = document.createElement("canvas");
      allLines(sized(everything, ratio));
    }
    context.drawImage(everything, 0, 0, layout.width, height);
  }

  /** @type {CanvasRenderingContext2D} */
  let context;
  let ratio = 1;
  function draw() {
    if (scroll.clientWidth === 0) return; // not laid out yet; the observer will call this again
    if (!layout || layout.width !== scroll.clientWidth) {
      everything = null;
      layout = measure();
      ratio = Math.min(
        window.devicePixelRatio || 1,
        Math.sqrt(MAX_PIXELS / (layout.width * height)),
      );
      canvas.style.width = `${layout.width}px`;
      canvas.style.height = `${height}px`;
      context = sized(canvas, ratio);
      // token positions in CSS pixels, for programs that read the picture
      Object.assign(canvas.dataset, { top: TOP, row: ROW });
    }
    paint(context, (/** @type {Pen} */ onto) => allLinesOnce(onto, ratio));
  }

  // ---- reading -----------------------------------------------------------------------------

  const keys =
    "Use the arrow keys to select a token. Click it or press Enter to pin it, then select another " +
    "token to read the pair.";

  /**
   * @param {string} first
   * @param {Row[]} rows
   */
  function say(first, rows) {
    const spans = [document.createElement("span")];
    spans[0].textContent = first;
    for (const { colour, text } of rows) {
      const span = document.createElement("span"),
        swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = swatch.style.borderColor = colour;
      span.append(swatch, text);
      spans.push(span);
    }
    for (const span of spans) span.className = span === spans[0] ? "first" : "line";
    readout.replaceChildren(...spans);
  }

  /** @param {Token} token */
  function sayToken({ side, index }) {
    /** @type {Row[]} */
    const rows = [],
      there = other(side);
    for (const { name, head, colour } of shown()) {
      /** @type {{ partner: number, value: number }[]} */
      const found = [];
      let leftOut = 0;
      for (let partner = 0; partner < sides[there].count; partner++) {
        const [query, key] = pair(side, index, partner);
        if (!visible(query, key)) continue;
        const value = at(head, query, key);
        if (Number.isNaN(value)) leftOut++;
        else found.push({ partner, value });
      }
      found.sort((a, b) => b.value - a.value);
      const listed = found
        .slice(0, LISTED)
        .map(({ partner, value }) => `${named(there, partner)} ${formatExact(value)}`);
      if (leftOut) listed.push(`${leftOut} hidden`);
      rows.push({ colour, text: `${name}: ${listed.join(", ") || "nothing"}` });
    }
    const what =
      side === "query"
        ? `query ${named(side, index)}: keys with the largest ${map.value}`
        : `key ${named(side, index)}: queries that give it the largest ${map.value}`;
    say(rows.length ? what : `${what}: no head is selected`, rows);
  }

  /**
   * @param {number} query
   * @param {number} key
   */
  function sayPair(query, key) {
    const title = `query ${named("query", query)} → key ${named("key", key)}`;
    if (!visible(query, key))
      return say(`${title}: masked, because the key comes after the query`, []);
    const rows = shown().map(({ name, head, colour }) => {
      const value = at(head, query, key);
      const text = Number.isNaN(value) ? "hidden" : `${map.value} ${formatExact(value)}`;
      return { colour, text: `${name}: ${text}` };
    });
    say(title, rows);
  }

  function show() {
    const first = kept || chosen;
    if (!first) say("", []);
    else if (kept && chosen && chosen.side !== kept.side) {
      sayPair(...pair(kept.side, kept.index, chosen.index));
    } else sayToken(first);
    draw();
  }

  /** @type {(a: Token | null, b: Token | null) => boolean} */
  const same = (a, b) => a !== null && b !== null && a.side === b.side && a.index === b.index;

  /** @param {Token | null} token */
  function choose(token) {
    if (same(token, chosen)) return;
    chosen = token;
    show();
  }

  // While a token is pinned, clicking one in the other column reads the pair instead of pinning it.
  /** @param {Token} token */
  function keep(token) {
    chosen = token;
    if (!kept || kept.side === token.side) kept = same(token, kept) ? null : token;
    show();
  }

  function clear() {
    chosen = kept = null;
    show();
  }

  /** @type {(event: PointerEvent) => Token | null} */
  function pointed(event) {
    if (!layout) return null;
    const box = canvas.getBoundingClientRect();
    const side = event.clientX - box.left < layout.width / 2 ? "query" : "key";
    const index = Math.floor((event.clientY - box.top - TOP) / ROW) - sides[side].first;
    return index >= 0 && index < sides[side].count ? { side, index } : null;
  }

  const FAR = Infinity;
  /** @type {Record<string, number>} */
  const STEPS = {
    ArrowUp: -1,
    ArrowDown: 1,
    PageUp: -10,
    PageDown: 10,
    Home: -FAR,
    End: FAR,
  };
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Escape") return clear();
    /** @type {Token} */
    const from = chosen || kept || { side: "query", index: 0 };
    /** @type {(side: Side, index: number) => Token} */
    const fit = (side, index) => ({
      side,
      index: Math.min(Math.max(index, 0), sides[side].count - 1),
    });
    /** @type {Token | null} */
    let next = null;
    // the first key press only selects the starting token
    if (event.key in STEPS) next = fit(from.side, from.index + (chosen ? STEPS[event.key] : 0));
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      /** @type {Side} */
      const side = event.key === "ArrowLeft" ? "query" : "key";
      // to the token at the same position in the other column
      next = fit(side, from.index + sides[from.side].first - sides[side].first);
    }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return keep(from);
    }
    if (!next) return;
    event.preventDefault();
    choose(next);
    cursor.style.top = `${middle(next.side, next.index) - ROW / 2}px`;
    cursor.style.height = `${ROW}px`;
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  const onMove = (/** @type {PointerEvent} */ event) => {
    const token = pointed(event);
    if (token) choose(token);
  };
  const onClick = (/** @type {PointerEvent} */ event) => {
    const token = pointed(event);
    if (token) keep(token);
  };
  const onLeave = (/** @type {PointerEvent} */ event) => {
    if (event.pointerType === "mouse") choose(null);
  };

  // ---- legend and buttons ------------------------------------------------------------------

  function legend() {
    const { from, of } = limits();
    find(".words").textContent =
      `Thicker, more opaque lines have a larger ${map.value} (up to ${number(map.largest, 3)}). ` +
      (of > MAX_LINES
        ? `Only the ${MAX_LINES} largest of ${of} pairs are drawn (${number(from, 3)} or more).`
        : `Values below ${number(from, 2)} have no line.`) +
      (map.causal ? " Masked pairs have no line." : "");
  }

  const buttons = names.map(({ name, colour }) => {
    const button = document.createElement("button"),
      swatch = document.createElement("span");
    button.type = "button";
    swatch.className = "swatch";
    swatch.style.background = swatch.style.borderColor = colour;
    button.append(swatch, name);
    button.setAttribute("aria-pressed", String(!off.has(name)));
    button.onclick = () => {
      if (!off.delete(name)) off.add(name);
      button.setAttribute("aria-pressed", String(!off.has(name)));
      figure.dataset.off = JSON.stringify([...off]);
      everything = null;
      legend();
      show();
    };
    return button;
  });
  find(".heads").replaceChildren(...buttons);
  find(".title").textContent = map.title;
  readout.style.setProperty("--heads", String(names.length));
  canvas.setAttribute(
    "aria-label",
    `${map.title}: lines from ${map.queries} queries on the left to ${map.keys} keys on the right. ` +
      "Up and down select a token, left and right change the column, Enter pins a token so that you " +
      "can read it with another one, and Escape clears the selection.",
  );

  listen(canvas, "pointermove", onMove);
  listen(canvas, "click", onClick);
  listen(canvas, "pointerleave", onLeave);
  listen(canvas, "keydown", onKey);
  listen(canvas, "transitionend", draw); // the theme changed
  const saved = () =>
    layout && {
      width: layout.width,
      height,
      draw: (/** @type {Pen} */ onto) => paint(onto, allLines),
      element: canvas,
      title: map.title,
      says: map.says,
      about: map.about,
      name: `${shown()
        .map(({ name }) => name)
        .join("-")}-${map.value}s`,
      scales: shown().map(({ name, colour }) => ({ tone: () => colour, text: name })),
      words: [find(".words").textContent],
    };
  offerTools(parentElement, listen, { picture: saved, keys, failed: (text) => say(text, []) });

  legend();
  show();
  const stopWatching = onResize(scroll, draw);

  return replaceLast(parentElement, () => {
    stopWatching();
    forget();
  });
}
