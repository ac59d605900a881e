// @ts-check
// Lines from the selected number to the numbers that it was computed from.

/** @type {(panel: Panel, at: number) => Lit} */
function sourcesOfCell(panel, at) {
  const index = unravelIndex(panel.shape, at).map((i, axis) => real(panel, axis, i));
  const read = panel.made ? cellsRead(panel.made, index) : [];
  return { cell: panel.cells ? panel.cells[at] : -1, strand: panel.strand, read };
}

/**
 * The inputs of the number at this index, derived from its equation.
 * @type {(made: Pick<Made, "equation" | "sources" | "sizes">, index: number[]) => Lit["read"]}
 */
function cellsRead({ equation, sources, sizes }, index) {
  const [inputs, output] = equation.split("->");
  /** @type {Record<string, number>} */
  const known = {}; // the index for each letter of the output
  lettersOf(output).forEach((letters, axis) => {
    const shape = letters.map((letter) => sizes[letter]);
    unravelIndex(shape, index[axis]).forEach((i, nth) => (known[letters[nth]] = i));
  });
  // an input's other letters are summed over, so all of their indices are read
  /** @type {(letters: string[]) => number[]} */
  const indicesRead = (letters) =>
    letters.reduce(
      (found, letter) => {
        const own = letter in known ? [known[letter]] : Array.from(Array(sizes[letter]).keys());
        return found.flatMap((i) => own.map((j) => i * sizes[letter] + j));
      },
      [0],
    );
  return inputs.split(",").map((input, nth) => ({
    identity: sources[nth],
    axes: lettersOf(input).map(indicesRead),
  }));
}

// the letters of each axis: "t(hd)" has an axis with one letter and an axis with two
/** @type {(text: string) => string[][]} */
const lettersOf = (text) =>
  Array.from(text.matchAll(/\w|\((\w+)\)/g), ([letter, shared]) => [...(shared ?? letter)]);

/**
 * The position of some of a panel's cells in the window.
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

// one box per block of each panel, around a row, a column or a single number
/** @type {(view: TensorView) => ReadBox[]} */
function readBoxes({ picture, lit }) {
  if (!lit || lit.read.length === 0) return [];
  return picture.panels.flatMap((panel) => {
    if (!panel.layout || !panel.canvas.checkVisibility()) return [];
    const read = [...panel.values.keys()].filter((at) => cellIsRead(lit, panel, at));
    const blocks = Map.groupBy(read, (at) => placeOf(panel, at)[0]);
    const hue = QUANTITIES[panel.quantity] ?? "";
    return Array.from(blocks, ([block, cells]) => ({
      what: `${panel.identity} ${block}`,
      box: inWindow(panel, cells),
      hue,
    }));
  });
}

// if a tensor is drawn twice, the line goes to the closer one
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
