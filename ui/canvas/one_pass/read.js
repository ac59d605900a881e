// @ts-check
// The readout: a number, its name, how it was computed, and the cells that it was computed from.

const TERMS = 4; // number of terms of a sum that are written out

/** @typedef {{ map: PassData, opened: Opened | null, place: Place }} View the data and the visitor's location */

/** @type {(view: View) => Scene["frames"]} the selected cell and its inputs */
function framesOf({ map, opened, place }) {
  if (!inHead(place) || !opened) return [];
  const { matrix, row, column } = place,
    tokens = map.labels.length;
  /** @type {Record<string, Scene["frames"]>} */
  const read = {
    scores: [
      ["q", row, 0, 1, map.headSize],
      ["k", column, 0, 1, map.headSize],
    ],
    scaled: [["scores", row, column, 1, 1]],
    weights: [["scaled", row, 0, 1, tokens]],
    context: [
      ["weights", row, 0, 1, tokens],
      ["v", 0, column, tokens, 1],
    ],
    added: [["context", row, 0, 1, map.headSize]],
  };
  return [[matrix, row, column, 1, 1], ...(read[matrix] ?? [])];
}

/** @type {(opened: Opened | null, tensor: string, row: number, column: number) => number} */
function valueOf(opened, tensor, row, column) {
  const numbers = opened?.numbers[tensor];
  return numbers ? numbers.values[row * numbers.shape[1] + column] : NaN;
}

/** @type {(pairs: [number, number][]) => string} a sum of products, with the first ones written out */
function sumOf(pairs) {
  const terms = pairs.slice(0, TERMS).map(([a, b]) => `${number(a, 3)}·${number(b, 3)}`);
  return `${terms.join(" + ")}${pairs.length > TERMS ? ` + … (${pairs.length} products)` : ""}`;
}

/** @type {(view: View) => string} how the selected number was computed */
function arithmeticOf({ map, opened, place }) {
  const { matrix, row, column } = place;
  const over = (/** @type {number} */ count) => [...Array(count).keys()],
    value = (/** @type {[string, number, number]} */ ...at) => valueOf(opened, ...at),
    keys = over(map.labels.length),
    numbers = over(map.headSize);
  /** @type {Record<string, () => string>} */
  const how = {
    scores: () => sumOf(numbers.map((d) => [value("q", row, d), value("k", column, d)])),
    scaled: () =>
      map.causal && column > row
        ? "masked, because the key comes after the query"
        : `${number(value("scores", row, column), 4)} · ${number(opened?.scale ?? 0, 4)}`,
    weights: () => {
      const all = keys.map((key) => value("scaled", row, key)),
        largest = Math.max(...all);
      const total = all.reduce((sum, score) => sum + Math.exp(score - largest), 0),
        share = Math.exp(all[column] - largest);
      return `${number(share, 3)} ÷ ${number(total, 3)}, which is e^(score − largest) divided by the sum of its row`;
    },
    context: () => {
      const seen = keys.filter((key) => value("weights", row, key) !== 0); // the others are masked
      return sumOf(seen.map((key) => [value("weights", row, key), value("v", key, column)]));
    },
    added: () =>
      sumOf(numbers.map((d) => [value("context", row, d), value("out_weight", d, column)])),
  };
  return how[matrix]?.() ?? "";
}

/** The name of a row of each matrix. @type {Record<string, string>} */
const VECTORS = {
  q: "query",
  k: "key",
  v: "value",
  context: "context vector",
  added: "update",
};

/** @type {(view: View) => string} */
function describeCell(view) {
  const { map, opened, place } = view,
    { layer, head, matrix, row, column } = place;
  const open = opened?.layer === layer && opened.head === head;
  if (!open || !opened?.numbers[matrix]) return opened?.missing ?? "The head is loading.";
  const value = valueOf(opened, matrix, row, column),
    shown = matrix === "weights" ? percent(value) : number(value, 4);
  if (matrix === "context" && map.off.includes(`L${layer}H${head}`))
    return `Element ${column} of the context vector of ${quoted(map, row)}: ${shown}, because this head is switched off.`;
  const how = arithmeticOf(view),
    what =
      matrix in VECTORS
        ? `Element ${column} of the ${VECTORS[matrix]} of ${quoted(map, row)}`
        : `${quoted(map, row)} → ${quoted(map, column)}`;
  return `${what}: ${shown}${how ? ` = ${how}` : ""}`;
}

/** @type {(map: PassData, token: number) => string} */
const quoted = (map, token) => `“${isolated(map.labels[token] ?? "")}”`;

/** @type {(view: View, pointed: Pointed | null, edges: Edge[], selected: number) => string} the readout */
function describe(view, pointed, edges, selected) {
  if (inHead(view.place)) return describeCell(view);
  if (pointed?.kind === "edge") return describeEdge(view.map, pointed.edge);
  if (pointed?.kind === "dot") return describeDot(view.map, pointed);
  if (pointed?.kind === "next") return describeNextWord(view.map, pointed);
  if (pointed?.kind === "layer") return describeLayer(view.map, pointed.layer, selected);
  if (view.place.level === "layer") return describeLayer(view.map, view.place.layer, selected);
  return describeWord(view.map, edges, selected);
}

/** @type {(map: PassData, edge: Edge) => string} */
function describeEdge(map, { layer, query, key, share, heads }) {
  const carriers = heads.map(([head, part]) => `L${layer}H${head} (${percent(part)})`);
  return (
    `Layer ${layer}: ${quoted(map, key)} → ${quoted(map, query)}, ${percent(share)} of the update.` +
    (carriers.length ? ` Carried by ${carriers.join(", ")}.` : "")
  );
}

/** @type {(map: PassData, dot: { layer: number, token: number }) => string} */
function describeDot(map, { layer, token }) {
  const share = map.numbers.flow_mlp.values[layer * map.labels.length + token];
  return `Layer ${layer}: ${percent(share)} of the update of ${quoted(map, token)} comes from the feed-forward network.`;
}

/** @type {(map: PassData, next: { choice: number, probability: number }) => string} */
function describeNextWord(map, { choice, probability }) {
  const word = `“${isolated(map.next?.[choice] ?? "")}”`;
  return `The model gives ${word} a probability of ${percent(probability)}. Click it to see why.`;
}

/** @type {(map: PassData, edges: Edge[], token: number) => string} */
function describeWord(map, edges, token) {
  const from = strongestInto(edges, token, 3).map(
    ({ key, layer, share }) => `${quoted(map, key)} (${percent(share)} in layer ${layer})`,
  );
  if (!from.length) return `No curve this strong leads to ${quoted(map, token)} from another word.`;
  return `${quoted(map, token)} gets the most from ${from.join(", ")}.`;
}

/** @type {(map: PassData, layer: number, token: number) => string} */
function describeLayer(map, layer, token) {
  const at = layer * map.labels.length + token,
    { attention_norms, mlp_norms, state_norms, guess_probabilities } = map.numbers;
  const text =
    `Layer ${layer} at ${quoted(map, token)}: attention adds a vector of length ` +
    `${number(attention_norms.values[at], 3)} and the feed-forward network one of length ` +
    `${number(mlp_norms.values[at], 3)} to a vector of length ${number(state_norms.values[at], 3)}.`;
  const guess = map.guesses[layer + 1];
  if (guess === undefined) return text;
  const sure = percent(guess_probabilities.values[layer + 1]);
  return `${text} If the model stopped here, “${isolated(guess)}” would come next (${sure}).`;
}
