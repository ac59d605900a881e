// @ts-check
// Frames around selected cells.

/**
 * A black and white frame, which is visible on every color.
 * @type {(context: Pen, box: Box) => void}
 */
function frameBox(context, { x, y, width, height }) {
  for (const [tone, thick] of /** @type {const} */ ([
    ["black", 4],
    ["white", 2],
  ])) {
    context.strokeStyle = tone;
    context.lineWidth = thick;
    context.strokeRect(x, y, width, height);
  }
}

/**
 * Lines along the row and the column of one cell.
 * @type {(context: Pen, layout: MapLayout, box: Box, ink: string) => void}
 */
function frameRowAndColumn(context, { grid, right, bottom }, { x, y, width, height }, ink) {
  context.strokeStyle = ink;
  context.globalAlpha = 0.5;
  context.lineWidth = 1;
  context.strokeRect(grid.left, y, right - grid.left, height);
  context.strokeRect(x, grid.top, width, bottom - grid.top);
  context.globalAlpha = 1;
}
