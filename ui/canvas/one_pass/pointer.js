// @ts-check
// Finds the part under the pointer, and handles the arrow keys.

/**
 * @typedef {{ kind: "word", token: number } | { kind: "edge", edge: Edge }
 *   | { kind: "dot", layer: number, token: number } | { kind: "layer", layer: number }
 *   | { kind: "next", choice: number, probability: number }
 *   | { kind: "tile", head: number } | { kind: "cell", tensor: string, row: number, column: number }
 * } Pointed
 */

const DOT_REACH = 3; // CSS pixels around a dot that count as the dot

/** @type {(scene: Scene, x: number, y: number) => Pointed | null} the part at a point of the layout */
function pointedAt(scene, x, y) {
  const hits = [...scene.items.values()].filter(
    (item) =>
      item.alpha > 0.5 && x >= item.x && x < item.x + item.w && y >= item.y && y < item.y + item.h,
  );
  for (const item of hits.sort((a, b) => b.rank - a.rank)) {
    const { kind, token = 0, choice = 0, head = 0 } = item;
    if (kind === "matrix") return cellOfMatrix(scene, item, x, y);
    if (kind === "tile") return { kind, head };
    if (kind === "word") return { kind, token };
    if (kind === "bar")
      return { kind: "next", choice, probability: scene.probabilities[choice] ?? 0 };
  }
  return inHead(scene.place) ? null : flowAt(scene, x, y);
}

/** @type {(item: Item, shape: number[]) => Grid} the cells of a matrix of an open head */
const gridOfCells = (item, [rows, columns]) => ({
  left: item.x,
  top: item.y,
  width: item.w / columns,
  height: item.h / rows,
  rows,
  columns,
});

/** @type {(scene: Scene, item: Item, x: number, y: number) => Pointed | null} */
function cellOfMatrix({ opened }, item, x, y) {
  const tensor = item.tensor ?? "",
    shape = opened?.numbers[tensor]?.shape ?? [1, 1],
    cell = cellAt(gridOfCells(item, shape), x, y);
  return cell && { kind: "cell", tensor, row: cell[0], column: cell[1] };
}

/** @type {(scene: Scene, x: number, y: number) => Pointed | null} a dot, a curve, a layer or a word's line */
function flowAt(scene, x, y) {
  const { map, size } = scene,
    [far, across] = size.phone ? [y, x] : [x, y],
    slab = (/** @type {number} */ layer) => slabIn(scene, layer);
  const layer = [...Array(map.layers).keys()].find((number) => {
    const item = slab(number);
    if (!item) return false;
    const [begin, long] = spanOf(size, item);
    return far >= begin && far < begin + long;
  });
  const token = Math.floor((across - size.first) / size.pitch);
  if (layer !== undefined && across < size.first) return { kind: "layer", layer };
  if (token < 0 || token >= map.labels.length) return null;
  const item = layer === undefined ? undefined : slab(layer);
  if (layer !== undefined && item) {
    const share = map.numbers.flow_mlp.values[layer * map.labels.length + token],
      [dx, dy] = dotOf(size, item, token),
      near = radiusOf(size, item, share) + DOT_REACH;
    if (share >= scene.least && Math.hypot(x - dx, y - dy) <= near)
      return { kind: "dot", layer, token };
  }
  const edge = edgeAt(size, slab, scene.edges, x, y);
  return edge ? { kind: "edge", edge } : { kind: "word", token };
}

/** @type {(value: number, count: number) => number} */
const clamp = (value, count) => Math.min(Math.max(value, 0), count - 1);

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * The new location after an arrow key: in the whole picture, another word or this word's next curve.
 * @type {(scene: Scene, key: string) => { place?: Partial<Place>, pointed?: Pointed }}
 */
function moveByArrowKey({ map, place, opened, edges, pointed }, key) {
  const [down, right] = ARROWS[key],
    { row, column, token } = place;
  if (place.level === "whole") {
    if (down) return { place: { token: clamp(token + down, map.labels.length) } };
    const own = edges
      .filter((edge) => edge.query === token && edge.key !== token)
      .sort((a, b) => a.layer - b.layer || a.key - b.key);
    const at = pointed?.kind === "edge" ? own.indexOf(pointed.edge) : right > 0 ? -1 : own.length;
    return own.length
      ? { pointed: { kind: "edge", edge: own[clamp(at + right, own.length)] } }
      : {};
  }
  if (place.level === "layer")
    return {
      place: {
        token: clamp(token + down, map.labels.length),
        head: clamp(place.head + right, map.heads),
      },
    };
  const shape = opened?.numbers[place.matrix]?.shape ?? [1, 1];
  if (place.level === "matrix")
    return { place: { row: clamp(row + down, shape[0]), column: clamp(column + right, shape[1]) } };
  const step = STEPS.findIndex(({ tensor }) => tensor === place.matrix);
  return {
    place: {
      matrix: STEPS[clamp(step + right + 5 * down, STEPS.length)].tensor,
      row: 0,
      column: 0,
    },
  };
}
