// One attention head on a canvas. All text reaches the page through textContent or fillText.

// Viridis at nine points (matplotlib, CC0): readable by colour-blind people, dark to bright.
const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [144, 215, 67], [253, 231, 37],
];
const LABEL_FONT_PX = 12;
const MIN_CELL = 3, MAX_CELL = 40, MAX_LABEL = 96, GAP = 6;

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
  const map = unpack(data);
  const visible = (row, column) => !map.causal || column <= row + map.columns - map.rows;
  let layout = null, chosen = null;

  const hint = "Hover, tap, or focus the picture and use the arrow keys to read a weight.";
  find(".title").textContent = map.title;
  find(".high").textContent = map.largest.toFixed(3);
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
    const label = Math.ceil(Math.min(widest, MAX_LABEL)) + GAP;
    const room = scroll.clientWidth - label - 1;
    const fitting = Math.floor(room / map.columns);
    const cell = Math.min(Math.max(fitting, MIN_CELL), MAX_CELL);
    // labels that would overlap are thinned out; the readout names every token
    const every = Math.ceil((LABEL_FONT_PX + 1) / cell);
    return { label, cell, every, width: label + cell * map.columns, height: label + cell * map.rows };
  }

  function draw() {
    if (scroll.clientWidth === 0) return; // not laid out yet: the observer calls again
    layout = measure();
    const { label, cell, every, width, height } = layout;
    // where the cells lie, in CSS pixels, for whoever reads the picture by program
    canvas.dataset.origin = label;
    canvas.dataset.cell = cell;
    const ratio = window.devicePixelRatio || 1;
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
        const x = label + column * cell, y = label + row * cell;
        if (visible(row, column)) {
          context.fillStyle = colour(map.values[row * map.columns + column] / map.largest);
          context.fillRect(x, y, cell - gap, cell - gap);
        }
      }
    }
    if (map.causal) hatch(context, text);
    labels(context, text, every);
    if (chosen) mark(context, text);
  }

  // One set of slanted lines over the whole forbidden triangle.
  function hatch(context, text) {
    const { label, cell, width, height } = layout;
    context.save();
    context.beginPath();
    for (let row = 0; row < map.rows; row++) {
      const first = row + map.columns - map.rows + 1;
      const x = label + first * cell;
      context.rect(x, label + row * cell, Math.max(width - x, 0), cell);
    }
    context.clip();
    context.strokeStyle = text;
    context.globalAlpha = 0.18;
    context.beginPath();
    for (let start = -height; start < width; start += 7) {
      context.moveTo(start, height);
      context.lineTo(start + height, 0);
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
      context.globalAlpha = !chosen || isChosen ? 1 : 0.55;
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

  function mark(context, text) {
    const { label, cell } = layout;
    context.strokeStyle = text;
    context.lineWidth = 2;
    context.strokeRect(label + chosen.column * cell, label + chosen.row * cell, cell, cell);
  }

  function choose(row, column) {
    chosen = { row, column };
    const names = `query ${row} “${map.labels[row]}” → key ${column} “${map.labels[column]}”`;
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

  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  function onKey(event) {
    if (event.key === "Escape") return clear();
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const from = chosen || { row: -move[0], column: -move[1] };
    const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
    choose(clamp(from.row + move[0], map.rows), clamp(from.column + move[1], map.columns));
  }

  const onLeave = (event) => event.pointerType === "mouse" && clear();
  canvas.addEventListener("pointermove", onPointer);
  canvas.addEventListener("pointerdown", onPointer);
  canvas.addEventListener("pointerleave", onLeave);
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("transitionend", draw); // the theme changed

  const bar = find(".bar"), strip = bar.getContext("2d");
  bar.width = 120;
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
