// @ts-check
// The text around a canvas: an explanation of rows and columns and the color scales. A saved picture
// also has its title, model and sentence.

const SCALE_BAR = { width: 180, height: 10, steps: 60 };
const GRADIENT = [...Array(25).keys()]; // enough for the stops of any scale
const HEAD_LINE = 16,
  LEGEND_ROW = 20,
  FRAME_MARGIN = 4,
  LEAST_PICTURE = 320;

/** @type {(middle?: string, high?: string) => string} the text after a bar */
const behind = (middle, high = "") => (middle ? `${high} (middle: ${middle})` : high);

/**
 * Show the legend of a canvas, with a bar for each scale.
 * @type {(place: HTMLElement, scales: Scale[]) => void}
 */
function showLegend(place, scales) {
  place.hidden = !scales.length;
  place.replaceChildren(
    ...scales.map(({ tone, low, middle, high, text }) => {
      const scale = document.createElement("span"),
        bar = document.createElement("span");
      scale.className = "colours";
      bar.className = "colour-bar";
      const tones = tone && GRADIENT.map((place) => tone(place / (GRADIENT.length - 1)));
      if (tones) bar.style.background = `linear-gradient(to right, ${tones.join(", ")})`;
      const before = [text, low].filter(Boolean).join(" ");
      scale.append(...(tone ? [before, bar, behind(middle, high)] : [before]));
      return scale;
    }),
  );
}

/**
 * @type {(context: Pen, tone: (share: number) => string, x: number, y: number, width: number,
 *         height: number) => void}
 */
function paintBar(context, tone, x, y, width, height) {
  const { steps } = SCALE_BAR,
    step = width / steps;
  for (let i = 0; i < steps; i++) {
    context.fillStyle = tone(i / (steps - 1));
    // the steps overlap, so that there are no gaps between them
    context.fillRect(x + i * step, y, Math.min(step + 0.3, width - i * step), height);
  }
}

/**
 * A picture as saved. Above it are the title, the explanation of rows and columns, notes, the model and
 * the sentence. Below it are the color scales and the rest of the legend.
 * @type {(picture: Picture) => Framed}
 */
function framed(picture) {
  const { title, says, notes = [], scales = [], words = [], about = {}, element } = picture;
  const measure = pen(document.createElement("canvas"));
  measure.font = LABEL;
  const rows = scales.map(({ tone, low = "", middle, high, text }) => {
    const words = tone ? [low, behind(middle, high), text] : [text];
    const wide = words.map((word) => measure.measureText(word).width + 6);
    return wide.reduce((a, b) => a + b, tone ? SCALE_BAR.width + 6 : 0);
  });
  const width = Math.ceil(Math.max(picture.width, LEAST_PICTURE, ...rows) + FRAME_MARGIN),
    room = width - 2 * FRAME_MARGIN;
  /** @type {(font: string, texts: (string | false | undefined)[]) => [string, string][]} */
  const lines = (font, texts) => {
    measure.font = font;
    const all = texts.flatMap((text) => (text ? wrap(measure, text, room) : []));
    return all.map((text) => [font, text]);
  };
  const above = [
    ...lines(HEADING, [title]),
    ...lines(LABEL, [
      says,
      ...notes,
      about.model && `Model: ${about.model}`,
      about.sentence && `Sentence: ${isolated(about.sentence)}`,
    ]),
  ];
  const below = lines(LABEL, words);
  const head = above.length ? above.length * HEAD_LINE + FRAME_MARGIN + 2 : 0,
    foot = scales.length * LEGEND_ROW + below.length * HEAD_LINE,
    height = Math.ceil(head + picture.height + (foot ? foot + 2 * FRAME_MARGIN : 0));
  /** @type {Framed["draw"]} */
  const draw = (context, ratio) => {
    const ink = getComputedStyle(element).color;
    context.textBaseline = "middle";
    const write = (/** @type {[string, string][]} */ texts, /** @type {number} */ top) =>
      texts.forEach(([font, text], i) => {
        context.fillStyle = ink;
        context.textAlign = "left";
        context.font = font;
        context.fillText(text, FRAME_MARGIN, top + (i + 0.5) * HEAD_LINE);
      });
    write(above, FRAME_MARGIN / 2);
    context.save();
    context.translate(0, head);
    picture.draw(context, ratio);
    context.restore();
    let top = head + picture.height + FRAME_MARGIN;
    for (const { tone, low, middle, high, text } of scales) {
      let x = FRAME_MARGIN;
      context.font = LABEL;
      context.textBaseline = "middle";
      context.textAlign = "left";
      for (const part of tone ? [low, tone, behind(middle, high), text] : [text]) {
        if (typeof part === "function") {
          paintBar(context, part, x, top + 5, SCALE_BAR.width, SCALE_BAR.height);
          x += SCALE_BAR.width + 6;
        } else if (part) {
          context.fillStyle = ink;
          context.fillText(part, x, top + LEGEND_ROW / 2);
          x += context.measureText(part).width + 6;
        }
      }
      top += LEGEND_ROW;
    }
    write(below, top);
  };
  return { width, height, draw, element, name: pictureName(picture) };
}

/** @type {(picture: Picture) => string} the file name: the model, the title, and the kind of numbers */
function pictureName({ title, about, kind, name }) {
  const what = (name ?? title).replace(about?.model ?? "", "");
  const named = kind && what.endsWith(kind);
  return [about?.name, what, named ? "" : kind].filter(Boolean).join("-");
}
