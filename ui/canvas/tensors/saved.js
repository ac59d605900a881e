// @ts-check
// All tensors of a figure as one picture to save, with the text above and below each of them.

const TEXT_LINE = 16,
  TEXT_GAP = 5,
  NAME_MARK = 10,
  MARGIN = 4;
const PANEL_GAP = [26, 16],
  TEXT_ROOM = 540,
  MIN_TEXT_ROOM = 200;

// Next to each other with line breaks where needed, as on the page.
/** @type {(view: TensorView, context: Pen, room: number) => PanelPlace[]} */
function placesOf({ picture }, context, room) {
  const most = Math.min(Math.max(room, MIN_TEXT_ROOM), TEXT_ROOM);
  let x = 0,
    y = 0,
    tallest = 0;
  return picture.panels.map((panel) => {
    context.font = LABEL;
    const above = wrap(context, panel.shapeText, most),
      below = wrap(context, panel.note, most);
    const widths = [...above, ...below].map((text) => context.measureText(text).width);
    context.font = HEADING;
    const width = Math.max(panel.layout.width, context.measureText(panel.name).width, ...widths);
    const height =
      (1 + above.length + below.length) * TEXT_LINE + panel.layout.height + 2 * TEXT_GAP;
    if (x > 0 && x + width > room) [x, y, tallest] = [0, y + tallest + PANEL_GAP[1], 0];
    const place = { panel, above, below, x, y, width, height };
    x += width + PANEL_GAP[0];
    tallest = Math.max(tallest, height);
    return place;
  });
}

/** @type {(view: TensorView) => Picture | null} */
function pictureOfPanels(view) {
  const { picture, root } = view;
  if (picture.panels.some((panel) => !panel.layout)) return null;
  const all = placesOf(view, pen(document.createElement("canvas")), root.clientWidth);
  return {
    width: Math.ceil(Math.max(...all.map(({ x, width }) => x + width))) + 2 * MARGIN,
    height: Math.ceil(Math.max(...all.map(({ y, height }) => y + height))) + 2 * MARGIN,
    draw: (/** @type {Pen} */ context) => {
      for (const place of all) drawPlace(view, context, place);
    },
    element: root,
    title: "",
    says: picture.says,
    about: picture.about,
    name: picture.panels.map((panel) => panel.name).join(" "),
    scales: panelScales(view),
  };
}

// the color scales; each tensor except weights has its own
/** @type {(view: TensorView) => Scale[]} */
function panelScales(view) {
  const { panels, hue } = view.picture,
    weighed = panels.find((panel) => panel.quantity === WEIGHTS);
  /** @type {Scale[]} */
  const found = [];
  if (weighed) {
    found.push({ tone: colour, low: "0", high: number(weighed.largest, 3), text: "weights" });
  }
  if (panels.some((panel) => panel.quantity !== WEIGHTS && !byIdentity(view, panel))) {
    const tone = (/** @type {number} */ share) => diverging(2 * share - 1, onDark(view));
    found.push({
      tone,
      low: "negative",
      high: "positive (each tensor has its own scale)",
      text: "",
    });
  }
  if (panels.some((panel) => byIdentity(view, panel))) {
    const text = `The color of a number shows which ${hue} it comes from or belongs to.`;
    found.push({ text });
  }
  return found;
}

/** @type {(view: TensorView, context: Pen, place: PanelPlace) => void} */
function drawPlace(view, context, { panel, above, below, x, y }) {
  let line = 0;
  /**
   * @param {string} text
   * @param {string} font
   */
  const say = (text, font) => {
    context.font = font;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = getComputedStyle(view.root).color;
    context.fillText(text, 0, (line + 0.5) * TEXT_LINE);
    line += 1;
  };
  context.save();
  context.translate(x + MARGIN, y + MARGIN);
  const hue = QUANTITIES[panel.quantity];
  if (hue) {
    context.fillStyle = hue;
    context.fillRect(0, 3, NAME_MARK, NAME_MARK);
    context.translate(NAME_MARK + MARGIN, 0);
  }
  say(panel.name, HEADING);
  if (hue) context.translate(-NAME_MARK - MARGIN, 0);
  for (const text of above) say(text, LABEL);
  context.save();
  context.translate(0, line * TEXT_LINE + TEXT_GAP);
  paintPanel(view, panel, context);
  context.restore();
  context.translate(0, panel.layout.height + 2 * TEXT_GAP);
  for (const text of below) say(text, LABEL);
  context.restore();
}
