import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { sameWord, ghostOf } = script(
  "one_pass/ghosts.js",

  "sameWord",
  "ghostOf",
);

/** A pass over these tokens. A role other than "other" follows a colon: "it:pronoun". */
const pass = (...tokens) => ({
  labels: tokens.map((token) => token.split(":")[0]),
  roles: tokens.map((token) => token.split(":")[1] ?? "other"),
  off: [],
  play: null,
});

/** The label of the selected token in `now`, if `selected` was selected in `before`. */
const found = (now, before, selected) => now.labels[sameWord(now, before, selected)];

test("the same word stays selected in a longer, shorter or reordered text", () => {
  const before = pass("The", "cat", "sat", "down");
  assert.equal(found(pass("Then", "The", "cat", "ran", "off"), before, 1), "cat");
  assert.equal(found(pass("sat", "cat", "x"), before, 1), "cat");
  assert.equal(sameWord(pass("cat", "and", "cat₂", "x"), pass("cat", "cat₂", "x"), 1), 2);
});

test("without the same word, one with the same role is selected, or else the last token", () => {
  const before = pass("it:pronoun", "cat:content", "ran", "off");
  const now = pass("she:pronoun", "saw", "dogs:content", "birds:content", "there");
  assert.equal(found(now, before, 0), "she");
  assert.equal(found(now, before, 1), "birds");
  assert.equal(found(now, before, 2), "there", "no role that counts");
  assert.equal(found(pass("x", "y"), before, 0), "y", "no word with this role");
});

test("a selected last token stays the last one, even if the same word is elsewhere", () => {
  const before = pass("the", "cat", "the₂");
  assert.equal(sameWord(pass("the₂", "a", "b", "c"), before, 2), 3);
});

test("only a pass with disabled parts has a ghost: the full pass over the same text", () => {
  const [one, other] = [pass("a"), pass("b")],
    switched = { ...pass("b"), off: ["F3"] },
    played = { ...switched, play: { prompt: 1, passes: [] } };
  const drawn = (map, ghost = null) => ({ map, ghost, place: null, items: new Map() });
  assert.equal(ghostOf(null, switched), null);
  assert.equal(ghostOf(drawn(other), switched), other);
  assert.equal(ghostOf(drawn(switched, other), switched), other); // another part, or drawn again
  assert.equal(ghostOf(drawn(switched, other), other), null); // all parts on again
  assert.equal(ghostOf(drawn(one), switched), null); // another text
  assert.equal(ghostOf(drawn(other), played), null);
  assert.equal(ghostOf(drawn(one), other), null);
});
