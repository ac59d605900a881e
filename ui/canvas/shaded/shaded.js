// @ts-check
// A text drawn as tokens, each shaded by a number. All text reaches the page through textContent.

/** @typedef {[label: string, value: number | null, detail: string, framed: string, later: boolean, lineAfter: boolean]} Shaded */

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  markHeightFinal(parentElement);
  /**
   * @type {{
   *   title: string, says: string, hint: string, largest: number, squareRoot: boolean,
   *   tokens: Shaded[], about?: About,
   * }}
   */
  const sent = JSON.parse(new TextDecoder().decode(data));
  const { title, says, hint, largest, squareRoot, tokens, about } = sent;
  const figure = element(parentElement, ".shaded"),
    row = element(parentElement, ".row"),
    readout = element(parentElement, ".readout");
  const { listen, forget } = hearing();

  element(parentElement, ".title").textContent = title;
  const scale = {
    tone: colour,
    low: "0",
    high: number(largest, 3),
    text: `weight (color and bar${squareRoot ? ", square-root scale" : ""})`,
  };
  showLegend(element(parentElement, ".key"), [scale]);
  row.setAttribute("aria-label", `${title}. Use the arrow keys to read each token's number.`);
  readout.textContent = "";
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
    if (value !== null) {
      mark.style.setProperty("--share", String(share(value)));
      mark.style.background = colour(share(value));
      mark.style.color = readable(colourNumbers(share(value)));
    }
    if (later) mark.setAttribute("aria-hidden", "true");
    marks.push(mark);
    row.append(mark);
    if (lineAfter) row.append(document.createElement("br"));
  }

  function read(/** @type {number} */ index) {
    const [label, value, detail] = tokens[index];
    const weight = value === null ? "" : percent(value);
    const said = [weight, detail].filter(Boolean).join(", ");
    Object.assign(readout.dataset, { cell: index, value: value ?? "" });
    return `“${isolated(label)}”: ${said}`;
  }

  // ---- the picture to download

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

  function paint(/** @type {Pen} */ context, /** @type {number} */ index, /** @type {Box} */ box) {
    const [, value, , framed] = tokens[index],
      ink = getComputedStyle(row).color;
    const part = value === null ? 0 : share(value);
    if (value !== null) {
      context.fillStyle = colour(part);
      context.fillRect(box.x, box.y, box.width, box.height);
    }
    context.fillStyle = ink;
    context.globalAlpha = 0.14;
    context.fillRect(box.x, box.y + box.height, box.width, 4);
    context.globalAlpha = 1;
    context.fillStyle = OKABE_ITO.vermillion;
    context.fillRect(box.x, box.y + box.height, part * box.width, 4);
    if (framed) outline(context, framed, { ...box, height: box.height + 4 });
    return value === null ? ink : readable(colourNumbers(part));
  }

  readAlong(
    row,
    marks,
    tokens.findLastIndex(([, , , , later]) => !later),
    listen,
    (index) => {
      readout.textContent = index < 0 ? "" : read(index);
    },
  );
  offerTools(parentElement, listen, {
    keys: hint,
    table: () => [
      ["position", "token", "weight"],
      ...tokens.map(([label, value], index) => [index, label, value ?? ""]),
    ],
    picture: () => ({
      ...rowPicture(row, marks, paint),
      title,
      says,
      about,
      kind: "weights",
      scales: [scale],
      words: ["Solid frame: the query. Dashed frame: the token generated in this step."],
    }),
    failed: (text) => {
      readout.textContent = text;
    },
  });
  return replaceLast(parentElement, forget);
}
