// @ts-check
// Paints the tiles: images, outlines, captions, and the numbers of layers and heads.

const TILE_TEXT_PX = 13; // the size of the font LABEL

/**
 * Paint all tiles. `sheet`: a hidden canvas for their images. `ratio`: device pixels per CSS pixel.
 * @type {(view: MosaicView, layout: TileLayout, context: Pen, ratio: number, ink: string,
 *   sheet: HTMLCanvasElement) => void}
 */
function paintMosaic(view, layout, context, ratio, ink, sheet) {
  const { tiles, size, layersPerBlock } = layout;
  context.font = LABEL;
  context.imageSmoothingEnabled = false;
  const { side, corners } = drawTileImages(
    view,
    [...tiles.keys()],
    sheet,
    Math.round(size * ratio),
  );
  for (const [head, { x, y, width, height }] of tiles) {
    const [left, top] = corners.get(head) ?? [0, 0];
    context.drawImage(sheet, left, top, side, side, x, y, width, height);
    context.strokeStyle = ink;
    context.globalAlpha = 0.25;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    context.globalAlpha = 1;
    if (layersPerBlock === null) paintCaption(view, context, ink, head, x, y + height);
  }
  if (layersPerBlock !== null) paintHeadNumbers(view.map, tiles, layersPerBlock, context, ink);
}

/** @type {(view: MosaicView, context: Pen, ink: string, head: number, x: number, y: number) => void} */
function paintCaption({ map, arrangement }, context, ink, head, x, y) {
  context.fillStyle = ink;
  context.textAlign = "left";
  context.textBaseline = "top";
  const caption = arrangement.captions[head],
    name = headName(map, head);
  context.fillText(caption ? `${name}: ${caption}` : name, x, y + 2);
}

/**
 * Layer numbers to the left of each block, and head numbers above it.
 * @type {(map: MosaicData, tiles: TileLayout["tiles"], layersPerBlock: number, context: Pen,
 *   ink: string) => void}
 */
function paintHeadNumbers(map, tiles, layersPerBlock, context, ink) {
  context.fillStyle = ink;
  context.textBaseline = "middle";
  for (const [head, { x, y, width, height }] of tiles) {
    const layer = layerOfHead(map, head),
      index = headInLayer(map, head),
      every = Math.ceil(TILE_TEXT_PX / height);
    if (index === 0 && layer % every === 0) {
      context.textAlign = "right";
      context.fillText(String(layer), x - 6, y + height / 2);
    }
    if (layer % layersPerBlock === 0) {
      context.textAlign = "center";
      context.fillText(String(index), x + width / 2, HEAD_NUMBER / 2);
    }
  }
}
