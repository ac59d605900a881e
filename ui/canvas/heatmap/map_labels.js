// @ts-check
// The labels of a map: the names of the axes, and a label for each row and column with enough space.

/**
 * @param {Pen} context
 * @param {HeatmapData} map
 * @param {MapLayout} layout
 * @param {string} ink
 * @param {Cells | null} shown the cells whose labels are emphasized
 */
function paintLabels(context, map, layout, ink, shown) {
  const { grid, upright, everyColumn, everyRow } = layout;
  const side = grid.left - LABEL_GAP,
    above = grid.top - LABEL_GAP;
  context.font = LABEL;
  context.textBaseline = "middle";
  context.fillStyle = ink;
  paintAxes(context, map, side, above, grid.left);
  /** @type {(index: number, wanted: number[]) => void} */
  const strength = (index, wanted) => {
    context.globalAlpha = !shown || wanted.includes(index) ? 1 : 0.75;
  };
  const wantedRows = shown?.rows ?? [],
    wantedColumns = shown?.columns ?? [];
  context.textAlign = "right";
  for (const row of visibleLabels(map.rows, wantedRows, everyRow)) {
    const { y, height } = boxOf(grid, row, 0);
    strength(row, wantedRows);
    context.fillText(shorten(context, map.rowLabels[row], side), side, y + height / 2);
  }
  context.textAlign = upright ? "center" : "left";
  for (const column of visibleLabels(map.columns, wantedColumns, everyColumn)) {
    const { x, width } = boxOf(grid, 0, column);
    strength(column, wantedColumns);
    const text = shorten(context, map.labels[column], upright ? width : above - AXIS);
    if (upright) context.fillText(text, x + width / 2, above - MAP_LABEL_PX / 2);
    else drawVerticalText(context, text, x + width / 2, above);
  }
  context.globalAlpha = 1;
}

/**
 * The labels to draw: every nth one, except that labels in `wanted` replace their neighbors.
 * @type {(count: number, wanted: number[], every: number) => number[]}
 */
function visibleLabels(count, wanted, every) {
  const yields = (/** @type {number} */ i) => wanted.some((other) => Math.abs(i - other) < every);
  return [...Array(count).keys()].filter(
    (i) => wanted.includes(i) || (i % every === 0 && !yields(i)),
  );
}

/** @type {(context: Pen, text: string, x: number, y: number) => void} */
function drawVerticalText(context, text, x, y) {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.fillText(text, 0, 0);
  context.restore();
}

/**
 * The names of the axes, in the corner: "query ↓" above the rows and "key →" above the columns.
 * @type {(context: Pen, map: HeatmapData, side: number, above: number, left: number) => void}
 */
function paintAxes(context, map, side, above, left) {
  const [[row], [column]] = map.axes;
  context.globalAlpha = 0.75;
  context.textAlign = "right";
  context.fillText(shorten(context, `${row} ↓`, side), side, above - MAP_LABEL_PX / 2);
  context.textAlign = "left";
  context.fillText(`${column} →`, left, MAP_LABEL_PX / 2 + 1);
  context.globalAlpha = 1;
}
