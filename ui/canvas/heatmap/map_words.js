// @ts-check
// Describes cells in words, such as “it” → “animal”: 65%.

const LISTED = 4; // number of values that are listed for a block of aligned cells

/** @type {(map: HeatmapData, cells: Cells) => string} */
function describeCells(map, cells) {
  const { rows, columns } = cells;
  const names = [
    describePositions(map, map.axes[0], rows, map.rowLabels),
    describePositions(map, map.axes[1], columns, map.labels),
  ].join(" → ");
  const values = valuesOf(map, cells);
  if (!values) return `${names}: masked, because the key comes after the query`;
  if (!values.length) return `${names}: ${map.hiddenText}`;
  const name = map.valueName === "weight" ? "" : `${map.valueName} `;
  if (rows.length * columns.length === 1) {
    return `${names}: ${name}${describeValue(map, values[0])}`;
  }
  const listed = values.slice(0, LISTED).map((value) => describeValue(map, value));
  const more = values.length > LISTED ? ` … (${values.length} values)` : "";
  const merged = map.merges
    ? `; summed over keys, averaged over queries: ${describeValue(map, Number(exactValue(map, cells)))}`
    : "";
  return `${names}: ${map.valueName}s ${listed.join(", ")}${more}${merged}`;
}

/** @type {(map: HeatmapData, value: number) => string} */
function describeValue(map, value) {
  if (map.valueName === "weight") return percent(value);
  return (map.diverging && value > 0 ? "+" : "") + number(value, 4);
}

/**
 * The label of a position, or of the first and last of several.
 * @type {(map: HeatmapData, axis: [string, string], places: number[], labels: string[]) => string}
 */
function describePositions(map, axis, places, labels) {
  const quoted = (/** @type {number} */ place) => `“${isolated(labels[place])}”`;
  if (places.length > 1) return `${quoted(places[0])} … ${quoted(places[places.length - 1])}`;
  // if the labels are only indices, name the axis, too
  const bare = map.numbered && labels.every((label, index) => label === String(index));
  return bare ? `${axis[0]} ${places[0]}` : quoted(places[0]);
}
