// @ts-check
// Compares a new pass with the previous one: whether the new pass continues the old one, which of
// its words corresponds to the selected word, and which pass to compare with when parts are
// switched off.

/** @typedef {{ map: PassData, place: Place, ghost: PassData | null, items: Map<string, Item> }} Before */

/** @type {(one: PassData, other: PassData) => boolean} whether one can be animated into the other */
const sameModel = (one, other) =>
  one.model === other.model && one.layers === other.layers && one.heads === other.heads;

/** @type {(one: PassData, other: PassData) => boolean} */
const sameText = (one, other) => one.labels.join("\n") === other.labels.join("\n");

/** @type {(before: Before | null, map: PassData) => PassData | null} the pass to compare with */
function ghostOf(before, map) {
  if (!before || map.play || !map.off.length || !sameText(before.map, map)) return null;
  return before.map.off.length ? before.ghost : before.map;
}

/**
 * The position of a selected word in another text: the same word, or one with the same role (a pronoun,
 * the last content word), or else the last token.
 * @type {(map: PassData, other: PassData, token: number) => number}
 */
function sameWord(map, other, token) {
  const last = map.labels.length - 1,
    plain = (/** @type {string} */ label) => label.replace(/^␣|[₀-₉]+$/g, "").toLowerCase(),
    word = plain(other.labels[token] ?? ""),
    role = other.roles[token];
  if (token === other.labels.length - 1) return last;
  const exact = map.labels.indexOf(other.labels[token]);
  if (exact >= 0) return exact;
  const same = map.labels.findIndex((label) => plain(label) === word);
  if (same >= 0) return same;
  const alike = role === "other" ? -1 : map.roles.lastIndexOf(role);
  return alike < 0 ? last : alike;
}
