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

/** A stub drawing that creates the tour's elements by selector. */
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
 * Creates a tour and its drawing. `click` presses a button, `visited` lists the visited tokens, and
 * `requestCount` counts requests for captions. `isLoaded`: whether the current captions belong to
 * the tour's head.
 */
function startTour(at, isLoaded = () => true) {
  globalThis.element = (root, selector) => root.querySelector(selector);
  const root = new Drawing(),
    listeners = new Map(),
    visited = [];
  let requestCount = 0;
  root.dataset.told = String(at);
  const listen = (target, _, listener) => listeners.set(target, listener);
  const story = createTour(
    root,
    root,
    listen,
    ({ token }) => visited.push(token),
    isLoaded,
    () => requestCount++,
  );
  const panel = root.querySelector(".story");
  return {
    ...{ root, story, visited, panel, requestCount: () => requestCount },
    click: (selector) =>
      listeners.get((selector === ".begin" ? root : panel).querySelector(selector))(),
  };
}

test("a step taken while captions are loading is shown once they arrive", () => {
  const { root, story, visited, panel, click } = startTour(0);
  click(".after");
  assert.equal(root.dataset.told, "1");
  assert.equal(panel.hidden, false);
  assert.deepEqual(visited, []);
  assert.equal(story.retell(CAPTIONS), true);
  assert.deepEqual(visited, [1]);
  assert.equal(panel.querySelector(".count").textContent, "2 of 3");
  assert.equal(story.retell(CAPTIONS), false);
});

test("missing captions are requested from the server, and steps stay in range", () => {
  const { root, story, visited, panel, requestCount, click } = startTour(-1);
  click(".begin");
  assert.equal(requestCount(), 1);
  assert.equal(story.retell(CAPTIONS), false);
  for (let step = 0; step < 4; step++) click(".after");
  assert.deepEqual(visited, [0, 1, 2, 2, 2]);
  click(".end");
  assert.equal(root.dataset.told, "-1");
  assert.equal(panel.hidden, true);
});

test("a tour that is ended while captions are loading stays ended", () => {
  const { story, visited, panel, click } = startTour(1);
  click(".end");
  assert.equal(story.retell(CAPTIONS), false);
  assert.deepEqual(visited, []);
  assert.equal(panel.hidden, true);
});

test("a tour starts with its own head and requests that head's captions", () => {
  let isLoaded = false;
  const { root, story, visited, panel, requestCount, click } = startTour(-1, () => isLoaded);
  story.retell(CAPTIONS); // of another head that the visitor has opened
  click(".begin");
  assert.equal(requestCount(), 1);
  assert.deepEqual(visited, []);
  assert.equal(root.dataset.told, "0");
  story.retell(CAPTIONS);
  assert.equal(panel.hidden, false);
  assert.deepEqual(visited, [0]);
  click(".end");
  isLoaded = true;
  click(".begin");
  assert.equal(requestCount(), 1);
  assert.deepEqual(visited, [0, 0]);
});
