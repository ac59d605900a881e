// @ts-check
// Paints the flow: a line for each token, curves between them, dots, and the next words. Everything that
// leads to the selected word is dark, and the rest is pale.

const PALE = 0.2,
  EVERY_NUMBER = 44, // if layers are at least this long, all of them are numbered
  LEAST_LABEL = 15; // the minimum height of a row with a label

/** @type {(context: Pen, scene: Scene) => void} */
function paintFlow(context, scene) {
  const first = scene.items.get("slab 0");
  if (!first || first.alpha <= 0) return;
  context.lineCap = "round";
  paintLayerNumbers(context, scene, first.alpha);
  if (writes(scene)) clipToRows(context, scene);
  for (const onRoute of [false, true]) {
    paintLines(context, scene, first.alpha, onRoute);
    paintCurves(context, scene, first.alpha, onRoute);
    paintDots(context, scene, first.alpha, onRoute);
  }
  if (writes(scene)) context.restore();
  if (!writes(scene)) paintWayOut(context, scene, first.alpha);
  context.globalAlpha = 1;
  context.lineCap = "butt";
}

/** Hide tokens that the model hasn't generated yet. @type {(context: Pen, scene: Scene) => void} */
function clipToRows(context, { size, writing }) {
  const end = size.first + (writing?.rows ?? 0) * size.pitch;
  context.save();
  context.beginPath();
  if (size.phone) context.rect(0, 0, end, size.height);
  else context.rect(0, 0, size.width, end);
  context.clip();
}

/** @type {(scene: Scene, layer: number) => Item | undefined} */
const slabIn = ({ items }, layer) => items.get(`slab ${layer}`);

/** @type {(context: Pen, scene: Scene, alpha: number) => void} */
function paintLayerNumbers(context, scene, alpha) {
  const { map, size, ink, place, pointed } = scene;
  context.globalAlpha = alpha;
  context.textAlign = "center";
  for (let layer = 0; layer < map.layers; layer++) {
    const slab = slabIn(scene, layer);
    if (!slab) continue;
    const [begin, long] = spanOf(size, slab),
      lit = pointed?.kind === "layer" && pointed.layer === layer,
      open = place.level === "layer" && place.layer === layer;
    if (layer % 5 && long < EVERY_NUMBER && !lit && !open) continue;
    context.font = lit || open ? STRONG_LABEL : LABEL;
    context.fillStyle = lit ? flowColours(scene).attention : ink;
    context.globalAlpha = alpha * (lit || open ? 1 : 0.7);
    const named = (!size.phone && layer === 0) || lit || open ? `layer ${layer}` : String(layer);
    if (size.phone) context.fillText(String(layer), 12, begin + long / 2);
    else if (layer || !lit) context.fillText(named, Math.max(begin + long / 2, 20), 14);
    else context.fillText(named, begin + long / 2, 14);
  }
}

/** The colors of attention and of the feed-forward network, lighter on a dark page. @param {{ dark: boolean }} scene */
const flowColours = ({ dark }) =>
  dark
    ? { attention: OKABE_ITO.sky, network: OKABE_ITO.orange }
    : { attention: QUANTITIES.attention, network: QUANTITIES["feed-forward"] };

/** The opacity of a part of the route, by the share that flows through it. @param {number} through */
const strong = (through) => 0.35 + 0.65 * Math.min(Math.sqrt(through) * 1.6, 1);

/** @type {(context: Pen, scene: Scene, alpha: number, onRoute: boolean) => void} */
function paintLines(context, scene, alpha, onRoute) {
  const { map, size, ink, route } = scene,
    tokens = map.labels.length;
  context.strokeStyle = onRoute ? ink : QUANTITIES.stream;
  for (let token = 0; token < tokens; token++) {
    for (let layer = 0; layer < map.layers; layer++) {
      const slab = slabIn(scene, layer),
        through = route.kept[layer * tokens + token],
        on = through > 0;
      if (!slab || on !== onRoute) continue;
      const [begin, long] = spanOf(size, slab),
        start = layer ? begin : begin - STATION_GAP / 2,
        y = middleOf(size, token);
      context.globalAlpha =
        alpha * (on ? strong(through) : PALE) * computed(scene, token, layer / map.layers);
      context.lineWidth = on ? 1 + 3.5 * Math.sqrt(through) : 1;
      context.beginPath();
      context.moveTo(...point(size, start, y));
      context.lineTo(...point(size, begin + long, y));
      context.stroke();
    }
  }
}

/** @type {(context: Pen, scene: Scene, alpha: number, onRoute: boolean) => void} */
function paintCurves(context, scene, alpha, onRoute) {
  const { map, size, edges, route, pointed, place } = scene;
  for (const edge of edges) {
    const on = route.carried.has(edge),
      through = route.nodes[(edge.layer + 1) * map.labels.length + edge.query],
      lit = pointed?.kind === "edge" && pointed.edge === edge,
      slab = slabIn(scene, edge.layer);
    if (!slab || edge.query === edge.key || (on || lit) !== onRoute) continue;
    if (place.level === "layer" && edge.layer === place.layer) continue; // its heads are drawn instead
    const there = computed(scene, edge.query, edge.layer / map.layers);
    if (there <= 0) continue;
    context.strokeStyle = lit
      ? OKABE_ITO.vermillion
      : on
        ? flowColours(scene).attention
        : QUANTITIES.stream;
    context.globalAlpha =
      alpha * there * (lit ? 1 : on ? strong(through * Math.min(2.5 * edge.share, 1)) : PALE);
    context.lineWidth = thicknessOf(size, edge) + (lit ? 1.5 : 0);
    const { from, bend, late, to } = curveOf(size, slab, edge);
    context.beginPath();
    context.moveTo(...from);
    context.bezierCurveTo(...bend, ...late, ...to);
    context.stroke();
  }
}

/** @type {(context: Pen, scene: Scene, alpha: number, onRoute: boolean) => void} */
function paintDots(context, scene, alpha, onRoute) {
  const { map, size, route, least } = scene,
    tokens = map.labels.length,
    { values } = map.numbers.flow_mlp;
  context.fillStyle = flowColours(scene).network;
  for (let layer = 0; layer < map.layers; layer++) {
    const slab = slabIn(scene, layer);
    if (!slab) continue;
    for (let token = 0; token < tokens; token++) {
      const share = values[layer * tokens + token],
        through = route.nodes[(layer + 1) * tokens + token],
        on = through > 0;
      if (share < least || on !== onRoute) continue;
      context.globalAlpha =
        alpha * (on ? strong(through) : 0.22) * computed(scene, token, (layer + 0.5) / map.layers);
      const [x, y] = dotOf(size, slab, token);
      context.beginPath();
      context.arc(x, y, radiusOf(size, slab, share), 0, 2 * Math.PI);
      context.fill();
    }
  }
}

/** The line from the last token to the predicted words. @type {(context: Pen, scene: Scene, alpha: number) => void} */
function paintWayOut(context, scene, alpha) {
  const { map, size, items, ink } = scene,
    bar = items.get("bar 0"),
    last = slabIn(scene, map.layers - 1);
  if (!bar || !last) return;
  const [begin, long] = spanOf(size, last),
    start = begin + long,
    y = middleOf(size, map.labels.length - 1),
    on = scene.selected === map.labels.length - 1;
  context.strokeStyle = on ? ink : QUANTITIES.stream;
  context.globalAlpha = alpha * (on ? 0.75 : PALE);
  context.lineWidth = on ? 2 : 1;
  context.beginPath();
  context.moveTo(...point(size, start, y));
  if (size.phone) {
    context.bezierCurveTo(y, start + 12, bar.x + 8, start + 6, bar.x + 8, bar.y - 22);
  } else {
    const [end, high] = [bar.x - 3, bar.y + bar.h / 2],
      bend = (start + end) / 2;
    context.bezierCurveTo(bend, y, bend, high, end, high);
  }
  context.stroke();
}

/**
 * The word at the start of the selected curve, or else of the curve in the title.
 * @type {(map: PassData, selected: number, pointed: Pointed | null) => number}
 */
function sourceOf({ first }, selected, pointed) {
  if (pointed?.kind === "edge") return pointed.edge.key;
  return first.row === selected ? (first.column ?? -1) : -1;
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintWord(context, scene, { x, y, w, h, token = 0, text = "" }) {
  const { map, size, ink, writing, route, selected, pointed } = scene;
  if (writing && token >= writing.rows) return;
  const source = sourceOf(map, selected, pointed),
    chosen = token === selected || token === source;
  if (!isNamed(size.pitch, token, selected)) return;
  context.font = chosen ? `600 15px ${FAMILY}` : size.pitch < 22 ? LABEL : `15px ${FAMILY}`;
  context.fillStyle = token === source ? flowColours(scene).attention : ink;
  context.globalAlpha *= chosen ? 1 : route.nodes[token] > 0 ? 0.95 : 0.6;
  context.save();
  if (size.phone) {
    context.translate(x + w / 2, y + h - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
  } else {
    context.translate(x + w - 10, y + h / 2);
    context.textAlign = "right";
  }
  context.fillText(shorten(context, text, (size.phone ? h : w) - 10), 0, 0);
  context.restore();
}

/**
 * Whether a token's label is drawn. If rows are low, only every nth label is drawn, and the
 * selected token's label replaces its neighbors.
 * @type {(pitch: number, token: number, chosen: number) => boolean}
 */
function isNamed(pitch, token, chosen) {
  const every = Math.ceil(LEAST_LABEL / pitch);
  return token === chosen || (token % every === 0 && Math.abs(token - chosen) >= every);
}

/** @type {(context: Pen, scene: Scene, item: Item) => void} */
function paintNext(context, scene, { x, y, w, h, choice = 0, text = "" }) {
  const { ink, writing, place, pointed, size } = scene,
    probability = scene.probabilities[choice] ?? 0,
    ghost = scene.ghosts[choice] ?? 0;
  if (choice === 0) {
    context.font = LABEL;
    context.fillStyle = ink;
    context.textAlign = "left";
    context.globalAlpha *= 0.75;
    context.fillText("What comes next?", x, size.phone ? y - 12 : 14);
    context.globalAlpha /= 0.75;
  }
  // a pass predicts nothing before it's finished
  if (writing) context.globalAlpha *= Math.max(0, writing.share * 5 - 4);
  const lit = place.why === choice || (pointed?.kind === "next" && pointed.choice === choice),
    taken = writing?.flight && text === writing.pass.chosen,
    most = w * 0.42,
    long = Math.max(most * probability, 3);
  context.fillStyle = taken ? OKABE_ITO.vermillion : flowColours(scene).attention;
  context.globalAlpha *= choice === 0 || lit || taken ? 1 : 0.45;
  context.fillRect(x, y + 6, long, h - 12);
  context.globalAlpha /= choice === 0 || lit || taken ? 1 : 0.45;
  if (Math.abs(ghost - probability) > 0.001) {
    // mark the end of the bar before the change, or without temperature and top-k
    context.fillStyle = ink;
    context.fillRect(x + most * ghost - 1, y + 3, 2, h - 6);
  }
  context.textAlign = "left";
  context.fillStyle = ink;
  context.font = choice && !lit ? `15px ${FAMILY}` : `600 15px ${FAMILY}`;
  const said = percent(probability),
    start = x + Math.max(long, most * Math.min(ghost, 1)) + 8,
    room = x + w - start;
  const shown = shorten(context, text, Math.max(room - 44, 24)),
    wide = context.measureText(shown).width;
  context.fillText(shown, start, y + h / 2);
  context.font = LABEL;
  context.globalAlpha *= 0.8;
  context.fillText(said, start + wide + 6, y + h / 2);
  context.globalAlpha /= 0.8;
}
