// @ts-check
// The information flow of a pass: what tokens pass to other tokens in each layer, how much it
// matters, and the route that leads to a token. It's computed in
// attention_core/analysis/information_flow.py.

/**
 * What token `key` passes to token `query` in a layer. `share`: its share of the query's updated vector.
 * `heads`: the heads that carry most of it, with their shares of it.
 * @typedef {{
 *   layer: number, query: number, key: number, share: number, heads: [number, number][],
 * }} Edge
 */
/**
 * The route of a token. `nodes`, (L + 1) * T: at (layer, token), how much of the final vector flows
 * through that token's vector before that layer, along the drawn edges; 0 outside the route.
 * `kept`, L * T: how much of it stays on the token's own line through that layer.
 * @typedef {{ nodes: Float32Array, kept: Float32Array, carried: Set<Edge> }} Route
 */

// The smallest share that is drawn at each position of the slider.
const MIN_SHARES = [0.25, 0.16, 0.1, 0.06, 0.04, 0.025, 0.015],
  FIRST_DETAIL = 3,
  FEW = 2; // the minimum number of curves into the selected word

/** @type {(map: PassData) => Edge[]} weakest first, so that stronger ones are drawn on top */
function edgesOf({ numbers }) {
  const {
    shape: [count, wide],
    values,
  } = numbers.flow_edges;
  return Array.from({ length: count }, (_, at) => {
    const [layer, query, key, share, ...heads] = values.subarray(at * wide, (at + 1) * wide);
    /** @type {[number, number][]} */
    const carriers = [];
    for (let i = 0; i < heads.length; i += 2)
      if (heads[i + 1] > 0) carriers.push([heads[i], heads[i + 1]]);
    return { layer, query, key, share, heads: carriers };
  }).sort((a, b) => a.share - b.share);
}

/**
 * Trace a token's final vector back along all edges with at least this share.
 * @type {(map: PassData, edges: Edge[], token: number, least: number) => Route}
 */
function routeOf(map, edges, token, least) {
  const tokens = map.labels.length,
    nodes = new Float32Array((map.layers + 1) * tokens),
    kept = new Float32Array(map.layers * tokens),
    { values: residual } = map.numbers.flow_residual;
  /** @type {Set<Edge>} */
  const carried = new Set();
  /** @type {Edge[][]} */
  const ofLayer = Array.from({ length: map.layers }, () => []);
  for (const edge of edges) if (edge.share >= least) ofLayer[edge.layer].push(edge);
  nodes[map.layers * tokens + token] = 1;
  for (let layer = map.layers - 1; layer >= 0; layer--) {
    for (let at = layer * tokens; at < (layer + 1) * tokens; at++)
      if (residual[at] >= least) nodes[at] = kept[at] = nodes[at + tokens] * residual[at];
    for (const edge of ofLayer[layer]) {
      const through = nodes[(layer + 1) * tokens + edge.query];
      if (!through) continue;
      carried.add(edge);
      nodes[layer * tokens + edge.key] += through * edge.share;
    }
  }
  return { nodes, kept, carried };
}

/**
 * The initial level of detail. It's higher than usual if few curves lead to the selected word, or if
 * the curve in the title would be hidden.
 * @type {(map: PassData, edges: Edge[]) => number}
 */
function firstDetail({ first }, edges) {
  const into = edges.filter(({ query, key }) => query === first.token && key !== query),
    named = into.find(({ layer, key }) => layer === first.layer && key === first.column);
  for (let detail = FIRST_DETAIL; detail < MIN_SHARES.length; detail++) {
    const drawn = into.filter(({ share }) => share >= MIN_SHARES[detail]);
    if (drawn.length >= FEW && (!named || drawn.includes(named))) return detail;
  }
  return MIN_SHARES.length - 1;
}

/**
 * The other words that a word gets the most from, each with its strongest edge; strongest first.
 * @type {(edges: Edge[], token: number, most: number) => Edge[]}
 */
function strongestInto(edges, token, most) {
  /** @type {Map<number, Edge>} */
  const best = new Map();
  for (const edge of edges)
    if (edge.query === token && edge.key !== token) best.set(edge.key, edge);
  return [...best.values()].sort((a, b) => b.share - a.share).slice(0, most);
}
