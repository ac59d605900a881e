// @ts-check
// What is read at a place of the picture: the number, its name, how it was computed, and the cells
// that it was computed from.

const TERMS = 4; // of a sum, written out

/** @typedef {{ map: PassData, opened: Opened | null, place: Place }} View where a visitor stands, and what is there */

/** @type {(view: View) => Scene["frames"]} the cell that is read, and what it was computed from */
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

/** @type {(pairs: [number, number][]) => string} a sum of products, its first ones written out */
function sumOf(pairs) {
  const terms = pairs.slice(0, TERMS).map(([a, b]) => `${number(a, 3)}·${number(b, 3)}`);
  return `${terms.join(" + ")}${pairs.length > TERMS ? ` + … (${pairs.length} products)` : ""}`;
}

/** @type {(view: View) => string} how the number that is read was computed, in digits */
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
        ? "−∞: the query may not look ahead"
        : `${number(value("scores", row, column), 4)} · ${number(opened?.scale ?? 0, 4)}`,
    weights: () => {
      const all = keys.map((key) => value("scaled", row, key)),
        largest = Math.max(...all);
      const total = all.reduce((sum, score) => sum + Math.exp(score - largest), 0),
        share = Math.exp(all[column] - largest);
      return (
        `e^${number(all[column], 4)} ÷ the sum of e^score over the row; ` +
        `less the largest, ${number(share, 3)} ÷ ${number(total, 3)}`
      );
    },
    context: () => {
      const seen = keys.filter((key) => value("weights", row, key) !== 0); // the mask hides others
      return sumOf(seen.map((key) => [value("weights", row, key), value("v", key, column)]));
    },
    added: () =>
      sumOf(numbers.map((d) => [value("context", row, d), value("out_weight", d, column)])),
  };
  return how[matrix]?.() ?? "";
}

/** @type {(map: PassData, token: number) => string} */
const namedToken = (map, token) => `${token} “${isolated(map.labels[token] ?? "")}”`;

/** @type {(view: View) => string} the sentence that is read at the place */
function readingOf(view) {
  return inHead(view.place) ? readingOfCell(view) : readingOfLayer(view);
}

/** @type {(view: View) => string} */
function readingOfCell(view) {
  const { map, opened, place } = view,
    { layer, head, matrix, row, column } = place;
  const open = opened?.layer === layer && opened.head === head;
  if (!open || !opened?.numbers[matrix]) return opened?.missing ?? "The head is on its way.";
  const across = ["scores", "scaled", "weights"].includes(matrix)
    ? `key ${namedToken(map, column)}`
    : `number ${column}`;
  const exact = number(valueOf(opened, matrix, row, column), 6),
    isOff = matrix === "context" && map.off.includes(`L${layer}H${head}`),
    how = isOff ? "" : arithmeticOf(view);
  return (
    `${matrix}, L${layer}H${head}, [${row}, ${column}]: token ${namedToken(map, row)}, ${across}: ` +
    `${exact}${how ? ` = ${how}` : ""}${isOff ? ", as this head is switched off" : ""}`
  );
}

/** @type {(probability: number) => string} below 1 it is not said to be 1: others have a share too */
function chance(probability) {
  const rounded = number(probability, 3);
  return rounded === "1" ? number(probability, 6) : rounded;
}

/** @type {(view: View) => string} */
function readingOfLayer({ map, place }) {
  const { layer, token } = place,
    at = layer * map.labels.length + token,
    { attention_norms, mlp_norms, state_norms, guess_probabilities } = map.numbers;
  const text =
    `Layer ${layer}, token ${namedToken(map, token)}: the vector comes in ` +
    `${number(state_norms.values[at], 4)} long, attention adds ` +
    `${number(attention_norms.values[at], 4)}, the feed-forward network ${number(mlp_norms.values[at], 4)}.`;
  const guess = map.guesses[layer + 1];
  if (guess === undefined) return text;
  const sure = chance(guess_probabilities.values[layer + 1]);
  return `${text} The last token would now be followed by “${isolated(guess)}”, probability ${sure}.`;
}
