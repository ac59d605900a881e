// @ts-check
// Text for the mosaic: a cell in words, the legend, and the table of all heads.

/**
 * A cell in words, its value, and the value's maximum error. Masked and hidden cells have no numbers.
 * @type {(view: MosaicView, head: number, cell: TileCell) =>
 *   { text: string, value: number | "", off: number | "" }}
 */
function describeTile({ map, codes, arrangement }, head, [row, column]) {
  const name = headName(map, head),
    pair = `“${isolated(map.labels[row])}” → “${isolated(map.labels[column])}”`;
  const without = (/** @type {string} */ why) =>
    /** @type {const} */ ({ text: `${name}: ${pair}: ${why}`, value: "", off: "" });
  if (!isTileCellVisible(map, row, column))
    return without("masked, because the key comes after the query");
  if (arrangement.hidden.includes(column)) return without("this key is hidden");
  const code = codes[codeIndex(map, head, row, column)],
    value = valueOfCode(map, head, code);
  const digits =
    map.valueName === "weight" ? percent(value) : `${map.valueName} ${number(value, 3)}`;
  const caption = arrangement.captions[head] ? ` (${arrangement.captions[head]})` : "";
  return {
    text: `${name}${caption}: ${pair}: ${digits}`,
    value,
    off: errorOfCode(map, head, code),
  };
}

/** @type {(view: MosaicView) => { middle: string, high: string, kind: string }} */
function mosaicScale({ map, arrangement }) {
  const { scale, square_root, threshold, hidden } = arrangement;
  const kind = [square_root ? "square-root scale" : "linear scale"];
  if (threshold > 0) kind.push(`values below ${Math.round(100 * threshold)}% of the scale hidden`);
  if (map.causal) kind.push("empty: masked (future tokens)");
  if (hidden.length) kind.push(`${hidden.length} ${hidden.length === 1 ? "key" : "keys"} hidden`);
  return {
    middle: scale === null ? "" : number(scale / (square_root ? 4 : 2), 3),
    high: scale === null ? "largest of each head" : number(scale, 3),
    kind: kind.join("; "),
  };
}

/**
 * The largest value of each head and its two tokens; no rows until the codes are inflated.
 * @type {(view: MosaicView) => (string | number)[][]}
 */
function tableOfHeads({ map, codes, arrangement }) {
  const header = ["head", "query", "key", `largest ${map.valueName}`];
  if (!codes.length) return [header];
  const rows = [...Array(headCount(map)).keys()].map((head) => {
    const [row, column] = largestCell(map, codes, arrangement.hidden, head),
      value = valueOfCode(map, head, codes[codeIndex(map, head, row, column)]);
    return [headName(map, head), map.labels[row], map.labels[column], value];
  });
  return [header, ...rows];
}
