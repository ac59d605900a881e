// @ts-check
// The layout of a map's cells and labels, in CSS pixels.

const MAP_LABEL_PX = 13;
const MIN_CELL = 2,
  LARGE_CELL = 24, // for maps with few columns, if there's space
  FEW_COLUMNS = 20,
  ROOMY_WIDTH = 600,
  MAX_CELL = 48,
  LABELLED = 64, // up to this number of columns, all labels are drawn, and the picture scrolls if needed
  MAX_MAP_LABEL = 96,
  MAX_LABEL_SHARE = 0.28,
  AXIS = 18, // the height of the axis name above the columns
  LABEL_GAP = 6;

/** @typedef {ReturnType<typeof mapLayout>} MapLayout */

/**
 * upright: whether the column labels fit without rotation. everyRow, everyColumn: only every nth label
 * is drawn if labels would overlap; the readout still names every token.
 * @param {HeatmapData} map
 * @param {Pen} context
 * @param {number} width available for the picture
 */
function mapLayout(map, context, width) {
  context.font = `${MAP_LABEL_PX}px ${FAMILY}`;
  const measured = (/** @type {string} */ text) => context.measureText(text).width;
  const longest = Math.min(MAX_MAP_LABEL, width * MAX_LABEL_SHARE);
  const room = (/** @type {string[]} */ texts) =>
    Math.ceil(Math.min(Math.max(...texts.map(measured)), longest)) + LABEL_GAP;
  const left = room(
    [`${map.axes[0][0]} ↓`].concat(map.rowLabels, map.rowHeight ? map.roomFor : map.labels),
  );
  // half a label may extend beyond the last cell
  const margin = Math.ceil(MAP_LABEL_PX / 2) + 1;
  const cell = cellSize(map, width, (width - left - margin) / map.columns);
  const upright = Math.max(...map.labels.map(measured)) <= cell - 4;
  /** @type {Grid} */
  const grid = {
    left,
    top: AXIS + (upright ? MAP_LABEL_PX + LABEL_GAP : room(map.labels)),
    width: cell,
    height: map.rowHeight || cell,
    rows: map.rows,
    columns: map.columns,
  };
  const every = (/** @type {number} */ size) => Math.ceil(MAP_LABEL_PX / size);
  const right = left + cell * map.columns,
    bottom = grid.top + grid.height * map.rows;
  return {
    grid,
    upright,
    everyColumn: every(cell),
    everyRow: every(grid.height),
    right,
    bottom,
    width: right + margin,
    height: bottom + margin,
  };
}

/** @type {(map: HeatmapData, width: number, fitting: number) => number} */
function cellSize(map, width, fitting) {
  const few = map.columns < FEW_COLUMNS && width >= ROOMY_WIDTH,
    labelled = map.columns <= LABELLED && !map.numbered,
    least = few ? LARGE_CELL : labelled ? MAP_LABEL_PX : MIN_CELL;
  return Math.min(Math.max(fitting, least), MAX_CELL);
}

/**
 * The rectangle around some adjacent cells.
 * @type {(grid: Grid, cells: Cells) => Box}
 */
function boxAround(grid, { rows, columns }) {
  const first = boxOf(grid, Math.min(...rows), Math.min(...columns)),
    last = boxOf(grid, Math.max(...rows), Math.max(...columns));
  return {
    x: first.x,
    y: first.y,
    width: last.x + last.width - first.x,
    height: last.y + last.height - first.y,
  };
}
