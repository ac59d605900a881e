// @ts-check
// The text around a map: its title, its color bar, and the meaning of hatching and crosses.

/** @type {(root: HTMLElement | ShadowRoot, map: HeatmapData) => void} */
function showMapTexts(root, map) {
  const find = (/** @type {string} */ selector) => element(root, selector);
  const { low, middle, high, kind } = scaleTexts(map);
  find(".title").textContent = map.title;
  find(".mark").style.background = QUANTITIES[`${map.valueName}s`] ?? "";
  find(".low").textContent = low;
  find(".middle").textContent = middle;
  find(".high").textContent = high;
  find(".kind").textContent = kind;
  find(".hatched").textContent = hatchedText(map);
  const crossed = find(".absent");
  crossed.textContent = crossedText(map) || (map.mayHide ? `crossed out: ${map.hiddenText}` : "");
  crossed.style.visibility = crossedText(map) ? "" : "hidden"; // reserve its space
  find(".heatmap").classList.toggle("roomy", map.mayHide);
  const canvas = canvasElement(root, ".scroll canvas");
  canvas.style.cursor = map.picks ? "pointer" : "";
  canvas.setAttribute(
    "aria-label",
    `${map.title}: ${map.rows} ${map.axes[0][1]} by ${map.columns} ${map.axes[1][1]}, ` +
      `${map.valueName}s from ${low} to ${number(map.largest, 3)}. ` +
      `Use the arrow keys to read a cell${map.picks ? ", Enter to choose it." : "."}`,
  );
}

/** @type {(map: HeatmapData) => string} */
const hatchedText = (map) => (map.causal ? "hatched: masked (future tokens)" : "");

/** @type {(map: HeatmapData) => string} empty if every cell has a value */
const crossedText = (map) =>
  map.values.some(Number.isNaN) ? `crossed out: ${map.hiddenText}` : "";

/** @type {(root: HTMLElement | ShadowRoot, tone: (share: number) => string) => void} */
function paintMapBar(root, tone) {
  const bar = canvasElement(root, ".bar"),
    context = pen(bar);
  bar.width = 180;
  for (let x = 0; x < bar.width; x++) {
    context.fillStyle = tone(x / (bar.width - 1));
    context.fillRect(x, 0, 1, bar.height);
  }
}
