// @ts-check
// Writes out how a number was computed from others.

// the operator and the absolute value of the next term of a sum
/** @param {string} text */
const plus = (text) => (text.startsWith("−") ? ` − ${text.slice(1)}` : ` + ${text}`);

/**
 * How one number was computed, with all its digits.
 * @param {Panel} panel
 * @param {number} at
 */
function arithmetic({ made, values }, at) {
  if (!made) return "";
  const result = brief(values[at]);
  const pairs = Array.from({ length: made.nOperands }, (_, i) => {
    const first = 2 * (at * made.nOperands + i);
    return [made.operands[first], made.operands[first + 1]];
  });
  const products = pairs.map(([a, b]) => `${brief(a)}·${brief(b).replace(/^−.*$/, "($&)")}`);
  const powers = pairs.map(([a, b], i) => (b === 1 ? `e^${brief(a)}` : `e^(${products[i]})`));
  /** @type {(terms: string[], n: number) => string} */
  const sum = (terms, n) =>
    terms.reduce((text, term) => text + plus(term)) + (n > 0 ? ` + … (${n} more)` : "");
  const more = made.nTerms - products.length;
  if (made.kind === "softmax") {
    return `${result} = ${powers[0]} / (${sum(powers.slice(1), more + 1)})`;
  }
  if (made.kind === "masked" && values[at] === -Infinity) {
    return `${result}: this key is masked`;
  }
  if (made.kind === "masked") return `${result} = ${brief(pairs[0][0])}, not masked`;
  // a weight that is 0 because of the mask wasn't dropped
  if (made.kind === "dropout" && values[at] === 0 && pairs[0][0] !== 0) return "0: dropped";
  const bias = made.added ? plus(brief(made.added[at])) + " (bias)" : "";
  return `${result} = ${sum(products, more)}${bias}`;
}
