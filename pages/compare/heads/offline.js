// @ts-check
// Mounts the parts of an offline page as Streamlit would. FACTORIES stands before this text: for
// each script a function that returns what the script exports.

/**
 * @typedef {{
 *   html: string, css: string, factory: number, values: string[], json: boolean[], follows: string,
 *   missing: string,
 * }} Described
 */
/** @typedef {ReturnType<typeof prepared>} Part */

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`this file has no ${id}`);
  return found;
}
/** @param {string} id */
const decoded = (id) => Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
/** @param {string} id */
const parsed = (id) => JSON.parse(new TextDecoder().decode(decoded(id)));

/**
 * @param {Described} part
 * @param {number} i
 */
function prepared(part, i) {
  const host = document.createElement("div"),
    says = document.createElement("div");
  says.setAttribute("role", "status");
  if (part.html) byId(`part-${i}`).append(host, says);
  const root = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(part.css);
  root.adoptedStyleSheets = [style];
  root.innerHTML = part.html; // the site's own file, without a value in it
  const component = FACTORIES[part.factory]();
  const leave = /** @type {(() => void) | undefined} */ (undefined); // nothing to leave yet
  return { ...part, i, root, says, component, leave };
}

/** @type {Part[]} */
const parts = parsed("parts").map(prepared);

// Draw a part with the data that it holds for a value; "" is what it opens with.
/**
 * @param {Part} part
 * @param {unknown} value
 */
function mount(part, value) {
  const place = part.values.indexOf(String(value));
  part.says.textContent = place < 0 ? part.missing : "";
  if (place < 0) return;
  const id = `data-${part.i}-${place}`;
  try {
    part.leave?.();
    part.leave = part.component({
      data: part.json[place] ? parsed(id) : decoded(id),
      key: `part-${part.i}`,
      name: `part-${part.i}`,
      parentElement: part.root,
      setStateValue: follow,
      setTriggerValue: follow,
    });
  } catch (error) {
    part.says.textContent = `This browser could not draw this picture: ${error instanceof Error ? error.message : error}`;
    console.error(error);
  }
}

// A part has set a value, as it would for Python on the site.
/**
 * @param {string} name
 * @param {unknown} value
 */
function follow(name, value) {
  for (const part of parts) if (part.follows === name) mount(part, value);
}

for (const part of parts) mount(part, "");
