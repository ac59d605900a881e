import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { termFinder } = script("../frame/glossary/terms.js", "termFinder");

const TERMS = [
  { name: "Attention", spellings: ["attention"] },
  { name: "Self-attention", spellings: ["self-attention"] },
  { name: "Token", spellings: ["token", "tokens"] },
  { name: "Head size", spellings: ["head size", "d_k"] },
  { name: "Head", spellings: ["head", "heads"] },
  { name: "Division", spellings: ["√d", "√d_k"] },
  { name: "Cosine", spellings: ["cosine", "cosines"] },
];
const find = termFinder(TERMS, ["sines and cosines"]);

/** The marked words in each text. */
const marked = (text) => find(text).map(({ start, end }) => text.slice(start, end));

test("the first mention of each term is found, in any spelling and case", () => {
  const text = "Tokens and a token: TOKENS. Attention, then attention again.";
  assert.deepEqual(find(text), [
    { name: "Token", start: 0, end: 6 },
    { name: "Attention", start: 28, end: 37 },
  ]);
});

test("a term only matches whole words", () => {
  assert.deepEqual(marked("tokenizer, Tokenised, subtoken, token_ids, _token, token2, ahead"), []);
  assert.deepEqual(marked("a token’s place; (tokens)"), ["token"]);
  assert.deepEqual(marked("naïvetoken étoken tokené"), []);
});

test("a hyphenated word is a different word, and the longest term wins", () => {
  assert.deepEqual(marked("pre-attention, token-wise"), []);
  assert.deepEqual(marked("Self-attention of heads"), ["Self-attention", "heads"]);
  assert.deepEqual(marked("the head size, - token"), ["head size", "token"]);
  assert.deepEqual(marked("√d_k and √d, and d_k alone"), ["√d_k", "d_k"]);
});

test("phrases with another meaning and visitor text are skipped", () => {
  assert.deepEqual(marked("sines and cosines; the cosine"), ["cosine"]);
  assert.deepEqual(marked("“\u2068token\u2069” looks at a token"), ["token"]);
  assert.equal(find("“\u2068token\u2069” looks at a token")[0].start, 21);
});
