// @ts-check
// Stores a visitor's quiz answers in the browser and sends them to the site on the next visit.

const NAME = "attention-lab-answers";
let told = "";

/** @returns {string} the stored answers as JSON; empty if storage is blocked */
function storedText() {
  try {
    return localStorage.getItem(NAME) ?? "{}";
  } catch {
    return "{}";
  }
}

/**
 * Whether the stored JSON contains answers that the site doesn't have.
 * @param {string} text
 * @param {object} answers
 */
function hasMore(text, answers) {
  try {
    return Object.keys(JSON.parse(text)).some((key) => !(key in answers));
  } catch {
    return false; // not written by this site
  }
}

/** @param {Omit<StreamlitComponent, "data"> & { data: object }} component */
export default function ({ data, setStateValue, parentElement }) {
  // this component draws nothing, so the elements below needn't wait for it (layout_shift.js)
  if (parentElement instanceof ShadowRoot) parentElement.host.toggleAttribute("data-drawn", true);
  const text = storedText();
  if (text !== told && hasMore(text, data)) {
    told = text; // send it only once; answers that the site rejects are overwritten later
    setStateValue("kept", text);
    return;
  }
  try {
    localStorage.setItem(NAME, JSON.stringify(data));
    dispatchEvent(new Event(NAME)); // ui/frame/answered_pages.js adds a check mark to the page
  } catch {
    // storage is full or blocked, so the answers last only for this visit
  }
}
