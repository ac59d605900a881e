import assert from "node:assert/strict";
import test from "node:test";
import { script } from "./shared_scripts.js";

const { createTour } = script("one_pass/story.js", "createTour");
const CAPTIONS = ["Tokens", "Embeddings", "Queries"].map((title, token) => ({
  title,
  token,
  text: `About ${title}.`,
  href: "/tokens",
}));

/** A drawing of which only the story is there: its elements by their selectors. */
class Drawing {
  dataset = {};
  hidden = false;
  textContent = "";
  #parts = new Map();
  querySelector(selector) {
    if (!this.#parts.has(selector)) this.#parts.set(selector, new Drawing());
    return this.#parts.get(selector);
  }
  toggleAttribute() {}
  setAttribute() {}
}

/**
 * A teller and its drawing; `click` presses a button, `went` and `asked` are what the teller did.
 * `isThere`: whether the captions that are here are those of the tour's head.
 */
function told(at, isThere = () => true) {
  globalThis.element = (root, selector) => root.querySelector(selector);
  const root = new Drawing(),
    listeners = new Map(),
    went = [];
  let asked = 0;
  root.dataset.told = String(at);
  const listen = (target, _, listener) => listeners.set(target, listener);
  const story = createTour(
    root,
    root,
    listen,
    ({ token }) => went.push(token),
    isThere,
    () => asked++,
  );
  const inStory = root.querySelector(".story");
  return {
    ...{ root, story, went, inStory, asked: () => asked },
    click: (selector) =>
      listeners.get((selector === ".begin" ? root : inStory).querySelector(selector))(),
  };
}

test("a step that is taken while the captions are on their way is told when they are here", () => {
  const { root, story, went, inStory, click } = told(0);
  click(".after");
  assert.equal(root.dataset.told, "1");
  assert.equal(inStory.hidden, false);
  assert.deepEqual(went, []);
  assert.equal(story.retell(CAPTIONS), true);
  assert.deepEqual(went, [1]);
  assert.equal(inStory.querySelector(".count").textContent, "2 of 3");
  assert.equal(story.retell(CAPTIONS), false);
});

test("the server is asked for captions that are not here, and steps stay within them", () => {
  const { root, story, went, inStory, asked, click } = told(-1);
  click(".begin");
  assert.equal(asked(), 1);
  assert.equal(story.retell(CAPTIONS), false);
  for (let step = 0; step < 4; step++) click(".after");
  assert.deepEqual(went, [0, 1, 2, 2, 2]);
  click(".end");
  assert.equal(root.dataset.told, "-1");
  assert.equal(inStory.hidden, true);
});

test("a story that is ended while the captions are on their way stays ended", () => {
  const { story, went, inStory, click } = told(1);
  click(".end");
  assert.equal(story.retell(CAPTIONS), false);
  assert.deepEqual(went, []);
  assert.equal(inStory.hidden, true);
});

test("a tour begins with the head that it is about, and asks for its captions", () => {
  let isThere = false;
  const { root, story, went, inStory, asked, click } = told(-1, () => isThere);
  story.retell(CAPTIONS); // of another head, which the visitor has opened
  click(".begin");
  assert.equal(asked(), 1);
  assert.deepEqual(went, []);
  assert.equal(root.dataset.told, "0");
  story.retell(CAPTIONS);
  assert.equal(inStory.hidden, false);
  assert.deepEqual(went, [0]);
  click(".end");
  isThere = true;
  click(".begin");
  assert.equal(asked(), 1);
  assert.deepEqual(went, [0, 0]);
});
