// @ts-check
// Finds the glossary's terms in a text.

/**
 * Returns a function that finds the first mention of each term in a text. It matches whole words in any
 * of a term's spellings and prefers the longest match. Text between Unicode isolate marks comes from a
 * visitor and is skipped.
 * @param {{ name: string, spellings: string[] }[]} terms
 * @param {string[]} passedOver phrases that contain a term's word in another sense
 * @returns {(text: string) => { name: string, start: number, end: number }[]}
 */
function termFinder(terms, passedOver) {
  /** @type {Map<string, string>} */
  const names = new Map();
  for (const { name, spellings } of terms) {
    for (const spelling of spellings) names.set(spelling, name);
  }
  const spellings = [...names.keys(), ...passedOver]
    .sort((one, other) => other.length - one.length)
    .map((words) => words.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/ /g, "\\s+"));
  const pattern = new RegExp(
    "\u2068[^\u2069]*\u2069|" +
      `(?<![\\p{L}\\p{N}_]|\\p{L}-)(?:${spellings.join("|")})(?![\\p{L}\\p{N}_]|-\\p{L})`,
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
