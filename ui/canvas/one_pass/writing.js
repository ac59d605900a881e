// @ts-check
// Paints generation: the tokens being processed, and the cached keys and values.

const WAITING = 0.3; // opacity of tokens whose keys and values are only read from the cache

/** @type {(scene: Scene) => boolean} whether the model is writing and hasn't finished */
const writes = ({ writing }) => !!writing && !writing.ends;

// The opacity of a token at a position in the layers (0 to 1), while the model generates.
/** @type {(scene: Scene, token: number, share: number) => number} */
function computed({ writing }, token, share) {
  if (!writing || writing.ends) return 1;
  if (token >= writing.rows) return 0;
  if (token < writing.first) return WAITING;
  return share < writing.share ? 1 : 0;
}

// The cached keys and values, those that are being read now, and the chosen token on its way back to the
// text.
/** @type {(context: Pen, scene: Scene) => void} */
function paintWriting(context, scene) {
  const { map, writing, size, items } = scene,
    first = items.get("slab 0");
  if (!writing || writing.ends || !first || first.alpha < 1) return;
  const now = Math.min(Math.floor(writing.share * map.layers), map.layers - 1);
  for (let layer = 0; writing.first && layer < map.layers; layer++) {
    const { x, y, w, h } = /** @type {Item} */ (items.get(`slab ${layer}`)),
      [from, long] = size.phone ? [y, h] : [x, w],
      read = layer === now && writing.share < 1;
    const mark = read ? Math.min(long * 0.4, 7) : Math.min(long * 0.2, 2.5);
    for (let token = 0; token < writing.first; token++) {
      const wide = Math.min(size.pitch * (read ? 0.7 : 0.35), read ? 14 : 6),
        at = middleOf(size, token) - wide / 2;
      context.globalAlpha = read ? 1 : 0.5;
      [QUANTITIES.keys, QUANTITIES.values].forEach((colour, which) => {
        const { x, y, w, h } = box(size, from + which * (mark + 0.5), mark, at, wide);
        context.fillStyle = colour;
        context.fillRect(x, y, w, h);
      });
    }
  }
  if (writing.flight) paintFlight(context, scene, writing);
  context.globalAlpha = 1;
}

/** @type {(context: Pen, scene: Scene, writing: Writing) => void} */
function paintFlight(context, { items, size }, { flight, pass, rows }) {
  const choice = pass.next.indexOf(pass.chosen), // a token that isn't listed comes from the last bar
    from = items.get(`bar ${choice < 0 ? (size.phone ? BARS_ON_A_PHONE : BARS) - 1 : choice}`),
    to = items.get(`word ${rows}`);
  if (!from || !to) return;
  const eased = flight * flight * (3 - 2 * flight);
  const x = from.x + (to.x + to.w - 4 - from.x) * eased,
    y = from.y + 8 + (to.y + to.h / 2 - from.y - 8) * eased;
  context.globalAlpha = 1;
  context.font = STRONG_LABEL;
  context.textAlign = "left";
  const wide = context.measureText(pass.chosen).width;
  context.fillStyle = OKABE_ITO.yellow;
  context.fillRect(x - wide * eased - 5, y - 10, wide + 10, 20);
  context.fillStyle = "#1d2730";
  context.fillText(pass.chosen, x - wide * eased, y);
}
