// @ts-check
// Numbers that were only moved fly in from their previous position.

const FLIGHT = 600, // milliseconds at normal speed
  MOST_FLIGHTS = 400;

/** @type {(panel: Panel, at: number) => string} the ID of a number that is only moved */
const strandOf = (panel, at) => `${panel.strand} ${panel.cells?.[at] ?? -1}`;

/** @type {(view: TensorView, moving: HTMLElement, panel: Panel, found: Map<string, DOMRect>) => void} */
function fly(view, moving, panel, found) {
  const { picture, root } = view;
  const cells = [...panel.values.keys()].filter(
    (at) => isThere(panel, at) && found.has(strandOf(panel, at)),
  );
  if (!cells.length || cells.length > MOST_FLIGHTS) return;
  const { left, top } = root.getBoundingClientRect(),
    duration = FLIGHT / picture.speed;
  const paper = paperFor(getComputedStyle(panel.canvas).color);
  for (const at of cells) {
    const from = /** @type {DOMRect} */ (found.get(strandOf(panel, at))),
      to = inWindow(panel, [at]),
      tone = panelTone(view, panel, at, paper);
    const cell = document.createElement("span");
    if (panel.layout.numbered) cell.textContent = formatNumber(panel.values[at], picture.decimals);
    Object.assign(cell.style, {
      left: `${to.left - left}px`,
      top: `${to.top - top}px`,
      width: `${to.width}px`,
      height: `${to.height}px`,
      lineHeight: `${to.height}px`,
      background: css(tone),
      color: readable(tone),
    });
    moving.append(cell);
    const away = `translate(${from.left - to.left}px, ${from.top - to.top}px)`;
    cell.animate([{ transform: away }, { transform: "none" }], {
      duration,
      easing: "ease-in-out",
    });
  }
  panel.canvas.animate([{ opacity: 0.15 }, { opacity: 0.15, offset: 0.9 }, { opacity: 1 }], {
    duration,
  });
}
