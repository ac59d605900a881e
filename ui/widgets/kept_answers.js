// @ts-check
// Keeps what a visitor answered in the browser, and tells the site of it on a later visit.

const NAME = "attention-lab-answers";
let told = "";

/** @returns {string} what this browser keeps; nothing where it may not keep anything */
function keptText() {
  try {
    return localStorage.getItem(NAME) ?? "{}";
  } catch {
    return "{}";
  }
}

/**
 * Whether a text holds answers that the site does not know.
 * @param {string} text
 * @param {object} answers
 */
function hasMore(text, answers) {
  try {
    return Object.keys(JSON.parse(text)).some((key) => !(key in answers));
  } catch {
    return false; // somebody else's text
  }
}

/** @param {Omit<StreamlitComponent, "data"> & { data: object }} component */
export default function ({ data, setStateValue, parentElement }) {
  // nothing is drawn here: what stands below need not wait
  if (parentElement instanceof ShadowRoot) parentElement.host.toggleAttribute("data-drawn", true);
  const text = keptText();
  if (text !== told && hasMore(text, data)) {
    told = text; // once: what the site does not take is forgotten with the next answer
    setStateValue("kept", text);
    return;
  }
  try {
    localStorage.setItem(NAME, JSON.stringify(data));
    dispatchEvent(new Event(NAME)); // ui/frame/answered.js ticks off the page
  } catch {
    // full, or not allowed: the answers stay for this visit
  }
}
