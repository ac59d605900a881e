// @ts-check
// Where the terms of the glossary stand in a text.

/**
 * A function that finds the first mention of each term in a text. A term is found as whole words, in
 * any of its spellings; of two that begin at one place the longer holds. What stands between the marks
 * that keep right-to-left text in its place is a visitor's own, and passed over.
 * @param {{ name: string, spellings: string[] }[]} terms
 * @param {string[]} passedOver phrases that hold the word of a term in another sense
 * @returns {(text: string) => { name: string, start: number, end: number }[]}
 */
function termFinder(terms, passedOver) {
  /** @type {Map<string, string>} */
  const names = new Map();
  for (const { name, spellings } of terms) {
    for (const spelling of spellings) names.set(spelling, name);
  }
  const written = [...names.keys(), ...passedOver]
    .sort((one, other) => other.length - one.length)
    .map((words) => words.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/ /g, "\\s+"));
  const pattern = new RegExp(
    "\u2068[^\u2069]*\u2069|" +
      `(?<![\\p{L}\\p{N}_]|\\p{L}-)(?:${written.join("|")})(?![\\p{L}\\p{N}_]|-\\p{L})`,
    "giu",
  );
  return (text) => {
    /** @type {Map<string, { name: string, start: number, end: number }>} */
    const first = new Map();
    for (const { 0: words, index } of text.matchAll(pattern)) {
      const name = names.get(words.toLowerCase().replace(/\s+/g, " "));
      if (name && !first.has(name)) {
        first.set(name, { name, start: index, end: index + words.length });
      }
    }
    return [...first.values()];
  };
}
