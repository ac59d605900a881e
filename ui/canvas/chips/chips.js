// A text as its tokens. All text reaches the page through textContent.

export default function (component) {
  const { data, parentElement } = component;
  const find = (selector) => parentElement.querySelector(selector);
  const { title, hint, chips } = JSON.parse(new TextDecoder().decode(data));
  const row = find(".row"), readout = find(".readout");
  let lit = -1;

  find(".title").textContent = title;
  row.setAttribute("aria-label", `${title}: ${chips.length} tokens. Use the arrow keys to read.`);
  readout.textContent = hint;

  const spans = chips.map(([label, , quiet, chosen, lineAfter], index) => {
    const span = document.createElement("span");
    span.className = `chip ${quiet ? "quiet" : `tone${index % 4}`}${chosen ? " chosen" : ""}`;
    span.textContent = label;
    span.setAttribute("role", "option");
    return lineAfter ? [span, document.createElement("br")] : [span];
  });
  row.replaceChildren(...spans.flat());
  const marks = spans.map(([span]) => span);

  // new data makes new chips: what belongs to the old ones may hear an event once more
  const alive = () => marks.length > 0 && marks[0].isConnected;

  function choose(index) {
    if (index === lit || !alive()) return;
    if (lit >= 0) marks[lit].classList.remove("lit");
    lit = index;
    if (lit < 0) {
      readout.textContent = hint;
      return;
    }
    marks[lit].classList.add("lit");
    readout.textContent = chips[lit][1];
  }

  function onPointer(event) {
    const index = marks.indexOf(event.target.closest?.(".chip"));
    if (index >= 0) choose(index);
  }
  const onLeave = (event) => event.pointerType === "mouse" && choose(-1);
  const MOVES = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity };
  function onKey(event) {
    if (event.key === "Escape") return choose(-1);
    const move = MOVES[event.key];
    if (!move || !alive()) return;
    event.preventDefault();
    // the first key press only shows where the reading begins
    choose(lit < 0 ? 0 : Math.min(Math.max(lit + move, 0), marks.length - 1));
    marks[lit].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  row.addEventListener("pointerover", onPointer);
  row.addEventListener("pointerdown", onPointer);
  row.addEventListener("pointerleave", onLeave);
  row.addEventListener("keydown", onKey);
  return () => {
    row.removeEventListener("pointerover", onPointer);
    row.removeEventListener("pointerdown", onPointer);
    row.removeEventListener("pointerleave", onLeave);
    row.removeEventListener("keydown", onKey);
  };
}
