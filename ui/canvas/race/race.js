// @ts-check
// A race between two runs that generate text, replayed with their measured step times. Each step is
// a box from its start to its end, and its height is the number of tokens processed. Tokens that an
// earlier step had already processed are hatched. All text reaches the page through textContent or
// fillText.

/** @typedef {[written: number, milliseconds: number, tokens: number]} Step */
/** @typedef {{ name: string, text: string, steps: Step[] }} Lane */
/**
 * Packed by ui/canvas/race/__init__.py.
 * @typedef {{ run: string, prompt: string, steps: number, over: boolean, verdict: string,
 *   says: string, about?: About, lanes: Lane[] }} Race
 */

const LANE = 74,
  HEAD = 18, // of a lane: its name and progress
  AXIS = 20,
  SIDE = 6;
const COLOURS = [OKABE_ITO.blue, OKABE_ITO.vermillion]; // as in ui/charts/style.py
const MIN_AXIS = 200; // milliseconds

// The state of each replay: the run, and its time in milliseconds at a given moment on the page's
// clock. New data for the same run continues from there.
/** @type {WeakMap<Element, { run: string, time: number, moment: number }>} */
const REPLAYS = new WeakMap();

/** Round up to 1, 2 or 5 times a power of ten, so that the end of the axis rarely changes. */
function roundUp(/** @type {number} */ value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * /** @type {number} */ ([1, 2, 5, 10].find((step) => step * power >= value));
}

const seconds = (/** @type {number} */ milliseconds) => `${(milliseconds / 1000).toFixed(2)} s`;

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  markHeightFinal(parentElement);
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const figure = find(".race"),
    scroll = find(".scroll"),
    readout = find(".readout"),
    again = /** @type {HTMLButtonElement} */ (find(".again")),
    canvas = canvasElement(parentElement, "canvas");
  const boxes = [...figure.querySelectorAll("section")];
  const { listen, forget } = hearing();
  /** @type {Race} */
  const race = JSON.parse(new TextDecoder().decode(data));
  const lanes = race.lanes.map(({ name, text, steps }, number) => {
    let end = 0;
    const boxesInTime = steps.map(([written, milliseconds, tokens], index) => {
      end += milliseconds;
      return { from: end - milliseconds, end, written, tokens, again: index ? tokens - 1 : 0 };
    });
    return { name, letters: [...text], steps: boxesInTime, end, colour: COLOURS[number] };
  });
  const longest = Math.max(...lanes.map((lane) => lane.end));
  // while the run continues, only the time up to the end of the slower lane is known
  const known = race.over ? longest : Math.min(...lanes.map((lane) => lane.end));
  const axis = roundUp(Math.max(longest, MIN_AXIS));
  const most = Math.max(1, ...lanes.flatMap((lane) => lane.steps.map((step) => step.tokens)));
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const height = lanes.length * LANE + AXIS;

  // if the run is over when the figure appears, show the end; "Replay" starts over
  let replay = REPLAYS.get(figure);
  if (replay?.run !== race.run) {
    replay = { run: race.run, time: race.over || still ? known : 0, moment: performance.now() };
    REPLAYS.set(figure, replay);
  }
  let frame = 0;

  /** The number of finished steps of a lane at a time. */
  function done(/** @type {typeof lanes[number]} */ lane, /** @type {number} */ time) {
    const next = lane.steps.findIndex((step) => step.end > time);
    return next < 0 ? lane.steps.length : next;
  }

  function write(/** @type {number} */ time) {
    lanes.forEach((lane, number) => {
      const count = done(lane, time);
      const box = boxes[number];
      const text = element(box, ".text");
      const written = count ? lane.steps[count - 1].written : 0;
      const shown = race.prompt + lane.letters.slice(0, written).join("");
      element(box, ".name").textContent = lane.name;
      text.setAttribute("aria-label", `Generated text, ${lane.name}`);
      if (text.textContent === shown) return;
      text.textContent = shown;
      text.scrollTop = text.scrollHeight;
    });
  }

  /** @type {(context: Pen, width: number, time: number) => void} */
  function paint(context, width, time) {
    const ink = getComputedStyle(canvas).color;
    const x = (/** @type {number} */ at) => SIDE + (at / axis) * (width - 2 * SIDE);
    context.font = LABEL;
    context.textBaseline = "middle";
    lanes.forEach((lane, number) => {
      const top = number * LANE,
        floor = top + LANE - 6,
        room = LANE - HEAD - 8;
      const count = done(lane, time);
      const finished = race.over && count === race.steps;
      context.fillStyle = ink;
      context.textAlign = "left";
      context.fillText(`${lane.name}: ${count} of ${race.steps} tokens`, SIDE, top + HEAD / 2);
      context.strokeStyle = ink;
      context.globalAlpha = 0.35;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(SIDE, floor + 0.5);
      context.lineTo(width - SIDE, floor + 0.5);
      context.stroke();
      context.globalAlpha = 1;
      /** @type {Box[]} */
      const repeated = [];
      context.fillStyle = lane.colour;
      for (const step of lane.steps) {
        if (step.from >= time) break;
        const left = x(step.from),
          wide = Math.max(x(Math.min(step.end, time)) - left - 0.5, 0.5);
        const old = (step.again / most) * room,
          fresh = Math.max(((step.tokens - step.again) / most) * room, 2);
        context.fillRect(left, floor - old - fresh, wide, fresh);
        if (old) repeated.push({ x: left, y: floor - old, width: wide, height: old });
      }
      if (repeated.length) hatch(context, repeated, lane.colour, { top, floor, width });
      if (finished) flag(context, x(lane.end), lane.end, { top, floor, width }, ink);
    });
    context.fillStyle = ink;
    context.textAlign = "left";
    context.fillText("0 s", SIDE, height - AXIS / 2);
    context.textAlign = "right";
    context.fillText(`${axis / 1000} s`, width - SIDE, height - AXIS / 2);
  }

  /**
   * @typedef {{ top: number, floor: number, width: number }} Place the position of a lane
   * @type {(context: Pen, areas: Box[], colour: string, place: Place) => void}
   */
  function hatch(context, areas, colour, { top, floor, width }) {
    context.save();
    context.beginPath();
    for (const area of areas) context.rect(area.x, area.y, area.width, area.height);
    context.clip();
    context.globalAlpha = 0.25;
    context.fillStyle = colour;
    context.fillRect(0, top, width, LANE);
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.beginPath();
    for (let from = -LANE; from < width; from += 6) {
      context.moveTo(from, floor);
      context.lineTo(from + LANE, floor - LANE);
    }
    context.stroke();
    context.restore();
  }

  /** @type {(context: Pen, x: number, end: number, place: Place, ink: string) => void} */
  function flag(context, x, end, { top, floor, width }, ink) {
    context.strokeStyle = context.fillStyle = ink;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, floor);
    context.lineTo(x, top + HEAD);
    context.stroke();
    const text = `⚑ ${seconds(end)}`,
      long = context.measureText(text).width + 6,
      isRight = x + long > width; // without space on the right, it covers the bars
    const paper = getComputedStyle(canvas).getPropertyValue("--st-background-color");
    context.fillStyle = paper.trim() || "Canvas"; // hides the bars behind the text
    context.fillRect(isRight ? x - 1 - long : x + 1, top + HEAD, long, 17);
    context.fillStyle = ink;
    context.textAlign = isRight ? "right" : "left";
    context.fillText(text, x + (isRight ? -4 : 4), top + HEAD + 8);
  }

  function draw() {
    const { time } = /** @type {{ time: number }} */ (replay);
    const width = scroll.clientWidth;
    if (!width) return;
    const { context } = sizeCanvas(canvas, { width, height });
    paint(context, width, time);
    write(time);
    const atEnd = race.over && time >= known;
    const told = atEnd && race.verdict ? race.verdict : "";
    if (readout.textContent !== told) readout.textContent = told;
    again.disabled = !atEnd || !longest;
    const counts = lanes.map((lane) => `${lane.name} ${done(lane, time)} tokens`).join(", ");
    canvas.setAttribute("aria-label", `Race after ${seconds(time)}: ${counts}.`);
    figure.dataset.time = String(Math.round(time));
  }

  function tick(/** @type {number} */ now) {
    const at = /** @type {{ time: number, moment: number }} */ (replay);
    // the clock stops while it waits for data, so that no steps are skipped
    at.time = still ? known : Math.min(at.time + Math.max(now - at.moment, 0), known);
    at.moment = now;
    draw();
    frame = at.time < known ? requestAnimationFrame(tick) : 0;
  }

  listen(again, "click", () => {
    const at = /** @type {{ time: number, moment: number }} */ (replay);
    Object.assign(at, { time: 0, moment: performance.now() });
    frame ||= requestAnimationFrame(tick);
  });
  listen(canvas, "transitionend", draw); // the theme changed
  offerTools(parentElement, listen, {
    picture: () => {
      const width = scroll.clientWidth;
      const draws = (/** @type {Pen} */ context) => paint(context, width, known);
      if (!width) return null;
      const around = { title: "Two runs at their real speed", says: race.says, about: race.about };
      return { width, height, draw: draws, element: canvas, name: "race", ...around };
    },
    failed: (text) => {
      readout.textContent = text;
    },
  });
  const now = performance.now();
  if (now - replay.moment > 100) replay.moment = now; // it waited for data
  tick(now);
  const stopWatching = onResize(scroll, draw);
  return replaceLast(parentElement, () => {
    cancelAnimationFrame(frame);
    stopWatching();
    forget();
  });
}
