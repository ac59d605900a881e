import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const NAMES = ["PICTURE_NAME", "embeddingCode"];
const pictures = script("../frame/teaching/pictures.js", ...NAMES);
const ADDRESS =
  "https://lab.example.org/scaling?scaling_logits=1+2&view=clean&embed_options=dark_theme";

/** Decodes an attribute like a browser. Only these five escapes are used. */
const read = (code, name) => {
  const [, value] = code.match(new RegExp(` ${name}="([^"]*)"`)) ?? [];
  const escapes = { "&quot;": '"', "&lt;": "<", "&gt;": ">", "&amp;": "&" };
  return value.replaceAll(/&(?:quot|lt|gt|amp);/g, (escape) => escapes[escape]);
};

test("the code has an address, a size and a title", () => {
  const code = pictures.embeddingCode(ADDRESS, "scaling_chart", "Scaling, a chart", 600.2, 412);
  const url = new URL(read(code, "src"));
  const parameters = { scaling_logits: "1 2", embed: "true", picture: "scaling_chart" };
  assert.deepEqual(Object.fromEntries(url.searchParams), parameters);
  assert.equal(read(code, "width"), "601");
  assert.equal(read(code, "height"), "412");
  assert.equal(read(code, "title"), "Scaling, a chart");
});

test("a visitor's text stays inside its attribute", () => {
  const hostile = `"><script>alert(1)</script>&quot;'\u202e`;
  const address = new URL("https://lab.example.org/heads");
  address.searchParams.set("heads_text", hostile);
  const code = pictures.embeddingCode(address.href, "heads_map", hostile, 1, 1);
  assert.equal(code.match(/</g).length, 2, "the element begins and ends");
  assert.equal(code.match(/"/g).length, 12, "six attributes");
  assert.equal(read(code, "title"), hostile);
  assert.equal(new URL(read(code, "src")).searchParams.get("heads_text"), hostile);
});

test("a picture name is valid in a selector", () => {
  for (const name of ["", "a b", "a,b", "-a", "a:b", "a{", `a${"x".repeat(80)}`, "é", "a\\", "1"])
    assert.ok(!pictures.PICTURE_NAME.test(name), name);
  for (const name of ["scaling_softmax_chart", "word_pairs_grid_A", "tokens_chips_GPT-2--BPE-"])
    assert.ok(pictures.PICTURE_NAME.test(name), name);
});
