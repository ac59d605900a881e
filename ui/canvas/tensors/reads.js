// @ts-check
// Lines from the number that is pointed at to the numbers it was computed from.

/** @type {(panel: Panel, at: number) => Lit} */
function litBy(panel, at) {
  const index = unflat(panel.shape, at).map((i, axis) => real(panel, axis, i));
  const read = (panel.made?.reads ?? []).map(([identity, axes]) => ({
    identity,
    axes: axes.map((follows) => follows && indicesRead(follows, index)),
  }));
  return { cell: panel.cells ? panel.cells[at] : -1, strand: panel.strand, read };
}

/** @type {(follows: number[], index: number[]) => number[]} */
function indicesRead([axis, group, half, heads, columns], index) {
  const own = Math.floor(index[axis] / group) + index[heads] * columns;
  return half ? [own, (own + half) % (2 * half)] : [own];
}

/**
 * Where some cells of a panel lie in the window; those of a picture that is folded away nowhere.
 * @param {Panel} panel
 * @param {number[]} cells
 */
function inWindow(panel, cells) {
  const { left, top } = panel.canvas.getBoundingClientRect(),
    corners = cells.map((at) => cellBox(panel, at)),
    x = corners.map((corner) => corner.x),
    y = corners.map((corner) => corner.y);
  return new DOMRect(
    left + Math.min(...x),
    top + Math.min(...y),
    Math.max(...x) - Math.min(...x) + panel.layout.cellWidth - 1,
    Math.max(...y) - Math.min(...y) + panel.layout.cellHeight - 1,
  );
}

// one box for each block of each panel: a row, a column or a single number
/** @type {(view: TensorView) => ReadBox[]} */
function readBoxes({ picture, lit }) {
  if (!lit || lit.read.length === 0) return [];
  return picture.panels.flatMap((panel) => {
    if (!panel.layout || !panel.canvas.checkVisibility()) return [];
    const size = panel.grid[0] * panel.grid[1];
    const read = [...panel.values.keys()].filter((at) => cellIsRead(lit, panel, at));
    const blocks = [...new Set(read.map((at) => Math.floor(at / size)))];
    return blocks.map((block) => {
      const cells = read.filter((at) => Math.floor(at / size) === block);
      const hue = QUANTITIES[panel.quantity] ?? "";
      return { what: `${panel.identity} ${block}`, box: inWindow(panel, cells), hue };
    });
  });
}

// where a tensor is drawn twice, the line leads to the nearer drawing
/** @type {(view: TensorView, lines: HTMLElement, read: ReadBox[]) => void} */
function drawLines({ root, focus }, lines, read) {
  const drawing = document.createElementNS(SVG, "svg");
  lines.replaceChildren(drawing);
  if (focus === null) return;
  const from = inWindow(focus.panel, [focus.at]),
    { left, top } = root.getBoundingClientRect();
  /** @type {Map<string, { length: number, hue: string, ends: Record<string, number> }>} */
  const shortest = new Map();
  for (const { what, box: to, hue } of read) {
    const [x1, x2] = gap(from.left, from.right, to.left, to.right),
      [y1, y2] = gap(from.top, from.bottom, to.top, to.bottom);
    const length = Math.hypot(x2 - x1, y2 - y1);
    if (length >= (shortest.get(what)?.length ?? Infinity)) continue;
    shortest.set(what, {
      length,
      hue,
      ends: { x1: x1 - left, y1: y1 - top, x2: x2 - left, y2: y2 - top },
    });
  }
  for (const { ends, hue } of shortest.values()) {
    const line = document.createElementNS(SVG, "line");
    line.style.stroke = hue;
    for (const [name, place] of Object.entries(ends)) line.setAttribute(name, String(place));
    drawing.append(line);
  }
}
