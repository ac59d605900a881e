// Mounts the parts of an offline page as Streamlit would. FACTORIES stands before this text: for
// each script a function that returns what the script exports.

const decoded = (id) =>
  Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
const parsed = (id) => JSON.parse(new TextDecoder().decode(decoded(id)));

const parts = parsed("parts").map((part, i) => {
  const section = document.getElementById(`part-${i}`);
  const host = document.createElement("div"), says = document.createElement("div");
  says.setAttribute("role", "status");
  if (part.html) section.append(host, says);
  const root = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(part.css);
  root.adoptedStyleSheets = [style];
  root.innerHTML = part.html; // the site's own file, without a value in it
  return { ...part, i, root, says, component: FACTORIES[part.factory](), leave: null };
});

// Draw a part with the data that it holds for a value; "" is what it opens with.
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
    part.says.textContent = `This browser could not draw this picture: ${error.message}`;
    console.error(error);
  }
}

// A part has set a value, as it would for Python on the site.
function follow(name, value) {
  for (const part of parts) if (part.follows === name) mount(part, value);
}

for (const part of parts) mount(part, "");
