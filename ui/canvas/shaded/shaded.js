// A text as its tokens, shaded by a number each. All text reaches the page through textContent.

// Marks that keep right-to-left text from reordering the sentence around it.
const isolated = (text) => `\u2068${text}\u2069`;

export default function (component) {
  const { data, parentElement } = component;
  const find = (selector) => parentElement.querySelector(selector);
  const { title, hint, largest, squareRoot, tokens } = JSON.parse(new TextDecoder().decode(data));
  const figure = find(".shaded"), row = find(".row"), readout = find(".readout");
  let lit = -1;

  find(".title").textContent = title;
  find(".ends").textContent =
    `0 to ${largest.toPrecision(3)}${squareRoot ? ", square-root colours" : ""}`;
  row.setAttribute("aria-label", `${title}. Use the arrow keys to read each token's number.`);
  readout.textContent = hint;

  const share = (value) => {
    const part = Math.min(Math.max(value / largest, 0), 1);
    return squareRoot ? Math.sqrt(part) : part;
  };
  const marks = [];
  row.replaceChildren();
  for (const [label, value, , framed, later, lineAfter] of tokens) {
    const span = document.createElement("span");
    span.className = `token ${framed}${later ? " later" : ""}${value === null ? " bare" : ""}`;
    span.textContent = label;
    span.setAttribute("role", "option");
    span.setAttribute("aria-selected", "false");
    if (value !== null) span.style.setProperty("--share", share(value));
    if (later) span.setAttribute("aria-hidden", "true");
    marks.push(span);
    row.append(span);
    if (lineAfter) row.append(document.createElement("br"));
  }
  const last = tokens.findLastIndex(([, , , , later]) => !later);

  function adapt() {
    const [red, green, blue] = getComputedStyle(row).color.match(/[\d.]+/g).map(Number);
    figure.classList.toggle("dark", 0.299 * red + 0.587 * green + 0.114 * blue > 128);
  }

  // new data makes new marks: what belongs to the old ones may hear an event once more
  const alive = () => marks.length > 0 && marks[0].isConnected;

  function choose(index) {
    if (index === lit || !alive()) return;
    if (lit >= 0) {
      marks[lit].classList.remove("lit");
      marks[lit].setAttribute("aria-selected", "false");
    }
    lit = index;
    if (lit < 0) {
      readout.textContent = hint;
      return;
    }
    marks[lit].classList.add("lit");
    marks[lit].setAttribute("aria-selected", "true");
    const [label, value, detail] = tokens[lit];
    const number = value === null ? "" : `weight ${value.toPrecision(6)}`;
    const said = [number, detail].filter(Boolean).join(", ");
    readout.textContent = `position ${lit} “${isolated(label)}”: ${said}`;
  }

  function onPointer(event) {
    const index = marks.indexOf(event.target.closest?.(".token"));
    if (index >= 0 && index <= last) choose(index);
  }
  const MOVES = {
    ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity,
  };
  function onKey(event) {
    if (event.key === "Escape") return choose(-1);
    const move = MOVES[event.key];
    if (!move || !alive()) return;
    event.preventDefault();
    // the first key press only shows where the reading begins
    choose(lit < 0 ? 0 : Math.min(Math.max(lit + move, 0), last));
    marks[lit].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  const remove = [];
  function listen(name, handler) {
    row.addEventListener(name, handler);
    remove.push(() => row.removeEventListener(name, handler));
  }
  listen("pointerover", onPointer);
  listen("pointerdown", onPointer);
  listen("pointerleave", (event) => event.pointerType === "mouse" && choose(-1));
  listen("keydown", onKey);
  listen("transitionend", adapt);
  adapt();
  return () => remove.forEach((undo) => undo());
}
