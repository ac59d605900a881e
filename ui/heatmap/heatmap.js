// One attention head on a canvas. All text reaches the page through textContent or fillText.

// Viridis at nine points (matplotlib, CC0): readable by colour-blind people, dark to bright.
const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [144, 215, 67], [253, 231, 37],
];
const LABEL_FONT_PX = 12;
const MIN_CELL = 2, MAX_CELL = 40, MAX_LABEL = 96, MAX_LABEL_SHARE = 0.28, GAP = 6;

function colour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(place), STOPS.length - 2);
  const mix = STOPS[low].map((v, i) => Math.round(v + (STOPS[low + 1][i] - v) * (place - low)));
  return `rgb(${mix[0]} ${mix[1]} ${mix[2]})`;
}

function unpack(data) {
  const bytes = data.slice(); // a copy of its own: aligned, and not a view of a larger buffer
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { ...header, values: new Float32Array(bytes.buffer, 4 + length) };
}

function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let kept = [...text];
  while (kept.length > 1 && context.measureText(kept.join("") + "…").width > room) kept.pop();
  return kept.join("") + "…";
}

export default function (component) {
  const { data, parentElement } = component;
  const find = (selector) => parentElement.querySelector(selector);
  const canvas = find(".scroll canvas"), scroll = find(".scroll"), readout = find(".readout");
  const cursor = find(".cursor");
  const map = unpack(data);
  const share = (value) =>
    map.squareRoot ? Math.sqrt(value / map.largest) : value / map.largest;
  const visible = (row, column) => !map.causal || column <= row + map.columns - map.rows;
  let layout = null, chosen = null;

  const hint = "Hover, tap, or focus the picture and use the arrow keys to read a weight.";
  find(".title").textContent = map.title;
  find(".middle").textContent = (map.largest / (map.squareRoot ? 4 : 2)).toFixed(3);
  find(".high").textContent = map.largest.toFixed(3);
  find(".kind").textContent = map.squareRoot ? "square-root colours" : "";
  find(".hatched").textContent = map.causal ? "hatched: the query may not look ahead" : "";
  readout.textContent = hint;
  canvas.setAttribute(
    "aria-label",
    `${map.title}: ${map.rows} queries by ${map.columns} keys, weights from 0 to ` +
      `${map.largest.toFixed(3)}. Use the arrow keys to read a cell.`,
  );

  function measure() {
    const context = canvas.getContext("2d");
    context.font = `${LABEL_FONT_PX}px sans-serif`;
    const widest = Math.max(...map.labels.map((label) => context.measureText(label).width));
    const longest = Math.min(MAX_LABEL, scroll.clientWidth * MAX_LABEL_SHARE);
    const label = Math.ceil(Math.min(widest, longest)) + GAP;
    // half a label may stick out beyond the last cell
    const margin = Math.ceil(LABEL_FONT_PX / 2) + 1;
    const fitting = (scroll.clientWidth - label - margin) / map.columns;
    const cell = Math.min(Math.max(fitting, MIN_CELL), MAX_CELL);
    // labels that would overlap are thinned out; the readout names every token
    const every = Math.ceil((LABEL_FONT_PX + 1) / cell);
    const right = label + cell * map.columns, bottom = label + cell * map.rows;
    return { label, cell, every, right, bottom, width: right + margin, height: bottom + margin };
  }

  function draw() {
    if (scroll.clientWidth === 0) return; // not laid out yet: the observer calls again
    layout = measure();
    const ratio = window.devicePixelRatio || 1;
    const { label, cell, every, width, height } = layout;
    // cells have fractional sizes; their edges lie on whole device pixels, so that none is blurred
    const edge = (index) => Math.round((label + index * cell) * ratio) / ratio;
    // where the cells lie, in CSS pixels, for whoever reads the picture by program
    canvas.dataset.origin = label;
    canvas.dataset.cell = cell;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const text = getComputedStyle(canvas).color;
    const gap = cell >= 8 ? 1 : 0;
    for (let row = 0; row < map.rows; row++) {
      for (let column = 0; column < map.columns; column++) {
        if (visible(row, column)) {
          const x = edge(column), y = edge(row);
          context.fillStyle = colour(share(map.values[row * map.columns + column]));
          context.fillRect(x, y, edge(column + 1) - x - gap, edge(row + 1) - y - gap);
        }
      }
    }
    if (map.causal) hatch(context, text);
    labels(context, text, every);
    if (chosen) mark(context, text);
  }

  // One set of slanted lines over the whole forbidden triangle.
  function hatch(context, text) {
    const { label, cell, right, bottom } = layout;
    context.save();
    context.beginPath();
    for (let row = 0; row < map.rows; row++) {
      const first = row + map.columns - map.rows + 1;
      const x = label + first * cell;
      context.rect(x, label + row * cell, Math.max(right - x, 0), cell);
    }
    context.clip();
    context.strokeStyle = text;
    context.globalAlpha = 0.18;
    context.beginPath();
    for (let start = -bottom; start < right; start += 7) {
      context.moveTo(start, bottom);
      context.lineTo(start + bottom, 0);
    }
    context.stroke();
    context.restore();
  }

  function labels(context, text, every) {
    const { label, cell } = layout;
    const room = label - GAP;
    context.font = `${LABEL_FONT_PX}px sans-serif`;
    context.textBaseline = "middle";
    for (let i = 0; i < map.labels.length; i++) {
      const isChosen = chosen && (i === chosen.row || i === chosen.column);
      if (i % every && !isChosen) continue;
      const short = shorten(context, map.labels[i], room);
      const middle = label + (i + 0.5) * cell;
      context.fillStyle = text;
      context.globalAlpha = !chosen || isChosen ? 1 : 0.75;
      if (i < map.rows && !(chosen && i % every === 0 && every > 1 && near(i, chosen.row, every))) {
        context.textAlign = "right";
        context.fillText(short, room, middle);
      }
      if (!(chosen && i % every === 0 && every > 1 && near(i, chosen.column, every))) {
        context.save();
        context.translate(middle, room);
        context.rotate(-Math.PI / 2);
        context.textAlign = "left";
        context.fillText(short, 0, 0);
        context.restore();
      }
    }
    context.globalAlpha = 1;
  }

  // A thinned-out label gives way to the chosen one beside it.
  function near(i, selected, every) {
    return i !== selected && Math.abs(i - selected) < every;
  }

  // Lines along the row and the column, and a frame in two tones that shows on every colour.
  function mark(context, text) {
    const { label, cell, right, bottom } = layout;
    const x = label + chosen.column * cell, y = label + chosen.row * cell;
    context.strokeStyle = text;
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    context.strokeRect(label, y, right - label, cell);
    context.strokeRect(x, label, cell, bottom - label);
    context.globalAlpha = 1;
    for (const [tone, width] of [["black", 4], ["white", 2]]) {
      context.strokeStyle = tone;
      context.lineWidth = width;
      context.strokeRect(x, y, cell, cell);
    }
  }

  // Marks that keep right-to-left text from reordering the sentence around it.
  function isolated(index) {
    return `\u2068${map.labels[index]}\u2069`;
  }

  function choose(row, column) {
    chosen = { row, column };
    const names = `query ${row} “${isolated(row)}” → key ${column} “${isolated(column)}”`;
    const value = map.values[row * map.columns + column];
    readout.textContent = visible(row, column)
      ? `${names}: weight ${value.toPrecision(6)}`
      : `${names}: masked, the query may not look ahead`;
    draw();
  }

  function clear() {
    chosen = null;
    readout.textContent = hint;
    draw();
  }

  function onPointer(event) {
    if (!layout) return;
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - layout.label) / layout.cell);
    const row = Math.floor((event.clientY - box.top - layout.label) / layout.cell);
    if (row < 0 || column < 0 || row >= map.rows || column >= map.columns) return;
    if (!chosen || chosen.row !== row || chosen.column !== column) choose(row, column);
  }

  const FAR = Infinity;
  const MOVES = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-FAR, 0], PageDown: [FAR, 0], Home: [0, -FAR], End: [0, FAR],
  };
  function onKey(event) {
    if (event.key === "Escape") return clear();
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
    // the first key press only shows where the reading begins
    const [down, right] = chosen ? move : [0, 0];
    const from = chosen || { row: 0, column: 0 };
    choose(clamp(from.row + down, map.rows), clamp(from.column + right, map.columns));
    follow();
  }

  // Bring the chosen cell into view, whatever scrolls around the picture.
  function follow() {
    const { label, cell } = layout;
    cursor.style.left = `${label + chosen.column * cell}px`;
    cursor.style.top = `${label + chosen.row * cell}px`;
    cursor.style.width = cursor.style.height = `${cell}px`;
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  const onLeave = (event) => event.pointerType === "mouse" && clear();
  canvas.addEventListener("pointermove", onPointer);
  canvas.addEventListener("pointerdown", onPointer);
  canvas.addEventListener("pointerleave", onLeave);
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("transitionend", draw); // the theme changed

  const bar = find(".bar"), strip = bar.getContext("2d");
  bar.width = 180;
  for (let x = 0; x < bar.width; x++) {
    strip.fillStyle = colour(x / (bar.width - 1));
    strip.fillRect(x, 0, 1, bar.height);
  }

  let drawnWidth = 0;
  const observer = new ResizeObserver(() => {
    // only for a new width: drawing itself changes the height
    if (scroll.clientWidth !== drawnWidth) {
      drawnWidth = scroll.clientWidth;
      draw();
    }
  });
  observer.observe(scroll);
  draw();

  return () => {
    observer.disconnect();
    canvas.removeEventListener("pointermove", onPointer);
    canvas.removeEventListener("pointerdown", onPointer);
    canvas.removeEventListener("pointerleave", onLeave);
    canvas.removeEventListener("keydown", onKey);
    canvas.removeEventListener("transitionend", draw);
  };
}
