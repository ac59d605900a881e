// @ts-check
// A text as its tokens, shaded by a number each. All text reaches the page through textContent.

/** @typedef {[label: string, value: number | null, detail: string, framed: string, later: boolean, lineAfter: boolean]} Shaded */

const LEGEND_HEIGHT = 26,
  BAR_WIDTH = 120,
  BAR_STEPS = 60;

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  /** @type {{ title: string, hint: string, largest: number, squareRoot: boolean, tokens: Shaded[] }} */
  const { title, hint, largest, squareRoot, tokens } = JSON.parse(new TextDecoder().decode(data));
  const figure = element(parentElement, ".shaded"),
    row = element(parentElement, ".row");
  const readout = element(parentElement, ".readout"),
    ends = element(parentElement, ".ends");
  const { listen, forget } = hearing();

  element(parentElement, ".title").textContent = title;
  ends.textContent = `0 to ${largest.toPrecision(3)}${squareRoot ? ", square-root colours" : ""}`;
  row.setAttribute("aria-label", `${title}. Use the arrow keys to read each token's number.`);
  readout.textContent = hint;
  figure.style.setProperty("--tone", OKABE_ITO.sky);
  figure.style.setProperty("--bar", OKABE_ITO.vermillion);

  const share = (/** @type {number} */ value) => {
    const part = Math.min(Math.max(value / largest, 0), 1);
    return squareRoot ? Math.sqrt(part) : part;
  };
  /** @type {HTMLElement[]} */
  const marks = [];
  row.replaceChildren();
  for (const [label, value, , framed, later, lineAfter] of tokens) {
    const mark = document.createElement("span");
    mark.className = `token ${framed}${later ? " later" : ""}${value === null ? " bare" : ""}`;
    mark.textContent = label;
    if (value !== null) mark.style.setProperty("--share", String(share(value)));
    if (later) mark.setAttribute("aria-hidden", "true");
    marks.push(mark);
    row.append(mark);
    if (lineAfter) row.append(document.createElement("br"));
  }

  const isDark = () => bright(rgb(getComputedStyle(row).color));
  const adapt = () => figure.classList.toggle("dark", isDark());

  function read(/** @type {number} */ index) {
    const [label, value, detail] = tokens[index];
    const number = value === null ? "" : `weight ${value.toPrecision(6)}`;
    const said = [number, detail].filter(Boolean).join(", ");
    return `position ${index} “${isolated(label)}”: ${said}`;
  }

  // ---- the picture to take away

  function outline(
    /** @type {Pen} */ context,
    /** @type {string} */ framed,
    /** @type {Box} */ box,
  ) {
    context.strokeStyle = getComputedStyle(row).color;
    context.lineWidth = 2;
    context.setLineDash(framed === "chosen" ? [5, 3] : []);
    context.strokeRect(box.x, box.y, box.width, box.height);
    context.setLineDash([]);
  }

  function shade(/** @type {Pen} */ context, /** @type {number} */ part, /** @type {Box} */ box) {
    context.globalAlpha = part * (isDark() ? 0.52 : 1); // as --most in shaded.css
    context.fillStyle = OKABE_ITO.sky;
    context.fillRect(box.x, box.y, box.width, box.height);
    context.globalAlpha = 1;
  }

  function paint(/** @type {Pen} */ context, /** @type {number} */ index, /** @type {Box} */ box) {
    const [, value, , framed] = tokens[index],
      part = value === null ? 0 : share(value);
    const whole = { ...box, height: box.height + 4 };
    shade(context, part, whole);
    context.fillStyle = getComputedStyle(row).color;
    context.globalAlpha = 0.14;
    context.fillRect(box.x, box.y + box.height, box.width, 4);
    context.globalAlpha = 1;
    context.fillStyle = OKABE_ITO.vermillion;
    context.fillRect(box.x, box.y + box.height, part * box.width, 4);
    if (framed) outline(context, framed, whole);
  }

  function legend(/** @type {Pen} */ context, /** @type {number} */ top) {
    const y = top + LEGEND_HEIGHT / 2,
      step = BAR_WIDTH / BAR_STEPS;
    for (let i = 0; i < BAR_STEPS; i++) {
      shade(context, (i + 0.5) / BAR_STEPS, { x: 4 + i * step, y: y - 5, width: step, height: 10 });
    }
    let x = BAR_WIDTH + 14;
    const say = (/** @type {string} */ text) => {
      context.fillStyle = getComputedStyle(row).color;
      context.fillText(text, x, y);
      x += context.measureText(text).width + 14;
    };
    say(ends.textContent ?? "");
    for (const [framed, text] of [
      ["asks", "asks"],
      ["chosen", "chosen by this step"],
    ]) {
      outline(context, framed, { x, y: y - 5, width: 16, height: 10 });
      x += 22;
      say(text);
    }
  }

  readAlong(
    row,
    marks,
    tokens.findLastIndex(([, , , , later]) => !later),
    listen,
    (index) => {
      readout.textContent = index < 0 ? hint : read(index);
    },
  );
  listen(row, "transitionend", adapt);
  offerToSave(
    parentElement,
    listen,
    () => rowPicture(row, marks, title, paint, legend, LEGEND_HEIGHT),
    (text) => {
      readout.textContent = text;
    },
  );
  adapt();
  return forget;
}
