// @ts-check
// What was there before something was changed: against which pass a new one is held, and which of its
// tokens are the same.

/** @typedef {{ map: PassData, place: Place, ghost: PassData | null, items: Map<string, Item> }} Before what was drawn last */

/** @type {(one: PassData, other: PassData) => boolean} whether one can move into the other */
const sameModel = (one, other) =>
  one.model === other.model && one.layers === other.layers && one.heads === other.heads;

/** @type {(one: PassData, other: PassData) => boolean} */
const sameText = (one, other) => one.labels.join("\n") === other.labels.join("\n");

/** @type {(before: Before | null, map: PassData) => PassData | null} what new numbers are held against */
function ghostOf(before, map) {
  if (!before || map.play || before.map.play) return null;
  if (map.off.length) return before.map.off.length ? before.ghost : before.map;
  if (before.map.off.length) return null;
  return sameText(before.map, map) ? before.ghost : before.map;
}

/**
 * For each token of a pass the token of another one that it was, or -1. A changed word may be more
 * tokens than before, or fewer: what stands before it and behind it is the same.
 * @type {(map: PassData, other: PassData) => number[]}
 */
function sameTokens(map, other) {
  const plain = (/** @type {PassData} */ { labels }) =>
      labels.map((text) => text.replace(/[₀-₉]+$/, "")),
    [now, then] = [plain(map), plain(other)],
    shorter = Math.min(now.length, then.length);
  let first = 0,
    last = 0;
  while (first < shorter && now[first] === then[first]) first++;
  while (last < shorter - first && now[now.length - 1 - last] === then[then.length - 1 - last])
    last++;
  const was = [...now.keys()]; // of one token for another the place stays
  if (now.length === then.length) return was;
  return was.map((token) => {
    if (token < first) return token;
    return token < now.length - last ? -1 : token + then.length - now.length;
  });
}

/**
 * The lengths of the residual stream of another pass, for the tokens of this one; NaN for new ones.
 * @type {(map: PassData, other: PassData) => Float32Array}
 */
function lengthsOf(map, other) {
  const was = sameTokens(map, other),
    { values } = other.numbers.state_norms;
  return map.numbers.state_norms.values.map((_, at) => {
    const token = was[at % was.length],
      state = Math.floor(at / was.length);
    return token < 0 ? NaN : values[state * other.labels.length + token];
  });
}
