// @ts-check
// A text drawn as tokens. All text reaches the page through textContent.

/** @typedef {[label: string, detail: string, quiet: boolean, chosen: boolean, lineAfter: boolean]} Chip */

// Color-blind people can tell neighbors apart, too, and each tone has its own underline (chips.css).
const TONES = HEAD_COLOURS.slice(0, 4);
const DASHES = [[], [6, 3], [], [3, 3]];

/** @param {StreamlitComponent} component */
export default function (component) {
  const { data, parentElement } = component;
  markHeightFinal(parentElement);
  /** @type {{ title: string, says: string, hint: string, chips: Chip[], about?: About }} */
  const { title, says, hint, chips, about } = JSON.parse(new TextDecoder().decode(data));
  const row = element(parentElement, ".row"),
    readout = element(parentElement, ".readout");
  const { listen, forget } = hearing();

  element(parentElement, ".title").textContent = title;
  row.setAttribute(
    "aria-label",
    `${title}: ${chips.length} tokens. Use the arrow keys to read them.`,
  );
  readout.textContent = hint;

  const marks = chips.map(([label, , quiet, chosen], index) => {
    const mark = document.createElement("span");
    mark.className = `chip ${quiet ? "quiet" : `tone${index % 4}`}${chosen ? " chosen" : ""}`;
    if (!quiet) mark.style.setProperty("--tone", TONES[index % 4]);
    mark.textContent = label;
    return mark;
  });
  row.replaceChildren(
    ...chips.flatMap(([, , , , lineAfter], index) =>
      lineAfter ? [marks[index], document.createElement("br")] : [marks[index]],
    ),
  );

  function paint(/** @type {Pen} */ context, /** @type {number} */ index, /** @type {Box} */ box) {
    const [, , quiet, chosen] = chips[index],
      { x, y, width, height } = box,
      tone = index % 4;
    const ink = getComputedStyle(row).color;
    context.strokeStyle = ink;
    context.lineWidth = chosen ? 2 : 1;
    context.setLineDash(chosen ? [] : [3, 3]);
    if (quiet || chosen) context.strokeRect(x, y, width, height + (quiet ? 0 : 3));
    if (!quiet) {
      context.fillStyle = context.strokeStyle = TONES[tone];
      context.globalAlpha = 0.22;
      context.fillRect(x, y, width, height + 3);
      context.globalAlpha = 1;
      context.setLineDash(DASHES[tone]);
      context.lineWidth = tone === 2 ? 1 : 3;
      context.beginPath();
      for (const line of tone === 2 ? [0.5, 2.5] : [1.5]) {
        context.moveTo(x, y + height + line);
        context.lineTo(x + width, y + height + line);
      }
      context.stroke();
    }
    context.setLineDash([]);
    return ink;
  }

  readAlong(row, marks, marks.length - 1, listen, (index) => {
    readout.textContent = index < 0 ? hint : chips[index][1];
  });
  offerTools(parentElement, listen, {
    keys: "Use the arrow keys to move from one box to the next.",
    table: () => [
      ["position", "token", "details"],
      ...chips.map(([label, detail], index) => [index, label, detail]),
    ],
    picture: () => ({
      ...rowPicture(row, marks, paint),
      ...{ title, says, about, name: title || "tokens" },
    }),
    failed: (text) => {
      readout.textContent = text;
    },
  });
  return replaceLast(parentElement, forget);
}
