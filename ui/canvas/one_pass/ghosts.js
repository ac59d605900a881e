// @ts-check
// What was drawn before: whether a new pass continues it, which of its words is selected in another
// text, and against which pass one with parts switched off is compared.

/** @typedef {{ map: PassData, place: Place, ghost: PassData | null, items: Map<string, Item> }} Before */

/** @type {(one: PassData, other: PassData) => boolean} whether one can move into the other */
const sameModel = (one, other) =>
  one.model === other.model && one.layers === other.layers && one.heads === other.heads;

/** @type {(one: PassData, other: PassData) => boolean} */
const sameText = (one, other) => one.labels.join("\n") === other.labels.join("\n");

/** @type {(before: Before | null, map: PassData) => PassData | null} what new numbers are held against */
function ghostOf(before, map) {
  if (!before || map.play || !map.off.length || !sameText(before.map, map)) return null;
  return before.map.off.length ? before.ghost : before.map;
}

/**
 * Where a selected word is in another text: the same word, or one with the same role (a pronoun, the
 * last content word); the last token where there is neither.
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
