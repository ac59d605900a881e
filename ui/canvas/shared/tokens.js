// @ts-check
// A text as a row of elements, one per token: their readouts, and their drawing in a saved picture.

const ALONG_THE_ROW = {
  ArrowLeft: -1,
  ArrowUp: -1,
  ArrowRight: 1,
  ArrowDown: 1,
  Home: -Infinity,
  End: Infinity,
};

/**
 * Select a token with the pointer or the arrow keys, up to index `last`.
 * tell: called with the index of the selected token, or -1.
 * @type {(row: HTMLElement, marks: HTMLElement[], last: number, listen: Listen,
 *         tell: (index: number) => void) => void}
 */
function readAlong(row, marks, last, listen, tell) {
  let lit = -1;
  // new data creates new marks, but handlers of the old marks may still get an event
  const alive = () => marks.length > 0 && marks[0].isConnected;
  const light = (/** @type {boolean} */ on) => {
    marks[lit]?.classList.toggle("lit", on);
    marks[lit]?.setAttribute("aria-selected", String(on));
  };

  function choose(/** @type {number} */ index) {
    if (index === lit || !alive()) return;
    light(false);
    lit = index;
    light(true);
    tell(lit);
  }

  function onPointer(/** @type {PointerEvent} */ event) {
    const index = marks.indexOf(/** @type {HTMLElement} */ (event.target));
    if (index >= 0 && index <= last) choose(index);
  }

  function onKey(/** @type {KeyboardEvent} */ event) {
    if (event.key === "Escape") return choose(-1);
    if (!(event.key in ALONG_THE_ROW) || !alive()) return;
    const move = ALONG_THE_ROW[/** @type {keyof typeof ALONG_THE_ROW} */ (event.key)];
    event.preventDefault();
    // the first key press only selects the first token
    choose(lit < 0 ? 0 : Math.min(Math.max(lit + move, 0), last));
    marks[lit].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  for (const mark of marks) {
    mark.setAttribute("role", "option");
    mark.setAttribute("aria-selected", "false");
  }
  listen(row, "pointerover", onPointer);
  listen(row, "pointerdown", onPointer);
  listen(row, "pointerleave", (event) => event.pointerType === "mouse" && choose(-1));
  listen(row, "keydown", onKey);
}

const PICTURE_MARGIN = 4;

/**
 * The row as a picture to save, with every token at its position on the page. `paint` draws everything
 * except a token's label, and returns the label's color.
 * @type {(row: HTMLElement, marks: HTMLElement[],
 *         paint: (context: Pen, index: number, box: Box) => string) => Drawing}
 */
function rowPicture(row, marks, paint) {
  const frame = row.getBoundingClientRect();
  const width = row.clientWidth + 2 * PICTURE_MARGIN;
  const draw = (/** @type {Pen} */ context) => {
    context.textBaseline = "middle";
    context.textAlign = "left";
    marks.forEach((mark, index) => {
      const style = getComputedStyle(mark),
        place = mark.getBoundingClientRect();
      if (style.visibility === "hidden") return;
      const edge = Number.parseFloat(style.borderBottomWidth);
      const box = {
        x: place.left - frame.left + row.scrollLeft + PICTURE_MARGIN,
        y: place.top - frame.top + row.scrollTop,
        width: place.width,
        height: place.height - edge, // without the underline
      };
      const ink = paint(context, index, box);
      context.globalAlpha = 1;
      context.fillStyle = ink;
      context.font = `${style.fontSize} ${style.fontFamily}`;
      const pad = Number.parseFloat(style.paddingLeft);
      const label = shorten(context, mark.textContent ?? "", box.width - pad);
      context.fillText(label, box.x + pad, box.y + box.height / 2);
    });
  };
  return { width, height: row.scrollHeight + PICTURE_MARGIN, draw, element: row };
}
