// @ts-check
// A text as a row of elements, one for each token: how they are read, and drawn to be saved.

const ALONG_THE_ROW = {
  ArrowLeft: -1,
  ArrowUp: -1,
  ArrowRight: 1,
  ArrowDown: 1,
  Home: -Infinity,
  End: Infinity,
};

/**
 * Point at a token, or go from one to the next with the arrow keys, up to number `last`.
 * tell: called with the number of the token that is read, -1 for none.
 * @type {(row: HTMLElement, marks: HTMLElement[], last: number, listen: Listen,
 *         tell: (index: number) => void) => void}
 */
function readAlong(row, marks, last, listen, tell) {
  let lit = -1;
  // new data makes new marks: what belongs to the old ones may hear an event once more
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
    // the first key press only shows where the reading begins
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
 * The row as a drawing to save: every token where it lies on the page. `paint` draws what is around
 * a token's label, and returns the label's colour.
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
        height: place.height - edge, // of the label, above the line below it
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
