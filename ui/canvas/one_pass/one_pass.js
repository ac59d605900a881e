// @ts-check
// A complete pass of a model on one canvas. The visitor can zoom in from the flow between words to a
// layer, a head, a matrix and a cell. All text reaches the page through textContent or fillText.

const QUIET_MS = 600; // delay between the last change and the update of the address

/** @param {StreamlitComponent & { key?: string }} component */
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const button = (/** @type {string} */ selector) =>
    /** @type {HTMLButtonElement} */ (find(selector));
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    holder = find(".scroll"),
    readout = find(".readout"),
    slider = /** @type {HTMLInputElement} */ (find(".detail")),
    { listen, forget } = hearing();
  /** @type {PassData} */
  const map = unpackNumbers(data);
  const tokens = map.labels.length,
    allEdges = edgesOf(map);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const dark = () => bright(rgb(getComputedStyle(canvas).color));
  /** @type {Uint8Array} the quantized weights of all heads; empty before they're inflated */
  let codes = new Uint8Array();
  const images = imagesOf(map, () => codes, dark);
  /** @type {Opened | null} */
  let opened = null;
  // Streamlit calls this function again for new data, maybe even before the next frame or during a
  // touch. The parts that the visitor opened and selected stay.
  const figure = /** @type {HTMLElement & { lastDrawn?: Before }} */ (find(".one-pass"));
  const before = figure.lastDrawn && sameModel(figure.lastDrawn.map, map) ? figure.lastDrawn : null;
  let place = firstPlace();
  const next = nextWords(figure, map, ghostOf(before, map));
  /** @type {Size} */
  let size;
  /** @type {Stage} */
  let stage;
  let asking = 0, // the timer that starts after a change
    isTold = false; // whether a message newer than the place was sent to the server
  /** @type {Pointed | null} */
  let pointed = null;
  /** @type {{ of: string, edges: Edge[], route: Route } | null} */
  let flow = null;
  const walk = startWalk(canvas, before?.items ?? new Map(), draw);

  /** @returns {Place} */
  function firstPlace() {
    /** @type {Place} */
    const fallback = {
      ...{ level: "whole", layer: 0, head: 0, matrix: "weights", why: -1 },
      detail: firstDetail(map, allEdges),
      ...{ token: tokens - 1, row: tokens - 1, column: 0 },
      ...map.first,
    };
    const start = before?.place ?? { ...fallback, ...map.place };
    if (!before || sameText(before.map, map)) return start;
    const token = sameWord(map, before.map, start.token),
      { layer, head, row, column, detail } = fallback;
    return { ...start, token, layer, head, row, column, detail, why: -1 };
  }

  // ---- drawing

  /** The word whose route is dark: the one under the pointer, or else the selected one. */
  function selectedNow() {
    const writing = player.writing();
    if (writing && !writing.ends) return writing.rows - 1;
    return pointed?.kind === "word" && place.level === "whole" ? pointed.token : place.token;
  }

  /** The drawn curves and the route of the selected word, cached. */
  function flowNow() {
    const least = MIN_SHARES[place.detail],
      selected = selectedNow(),
      of = `${least} ${selected}`;
    if (flow?.of !== of) {
      const edges = allEdges.filter(({ share }) => share >= least);
      flow = { of, edges, route: routeOf(map, edges, selected, least) };
    }
    return { edges: flow.edges, route: flow.route, least, selected };
  }

  /** @type {() => Scene} */
  const sceneNow = () => ({
    ...{ map, opened, place, size, pointed, dark: dark() },
    ...{ items: walk.items(), weight: images.weight, image: images.image },
    ink: getComputedStyle(canvas).color,
    frames: framesOf({ map, opened, place }),
    ...nextNow(),
    ...flowNow(),
    writing: player.writing(),
  });

  /** The next-token probabilities to paint; while the model generates, those of its current pass. */
  function nextNow() {
    const shares = player.writing()?.pass.shares;
    if (shares) return { probabilities: shares, ghosts: shares };
    return { probabilities: next.probabilities(), ghosts: next.ghosts() };
  }

  function draw() {
    if (!size) return;
    const ratio = window.devicePixelRatio || 1,
      width = size.width * stage.zoom,
      height = stage.high || size.height * stage.zoom;
    if (
      canvas.width !== Math.round(width * ratio) ||
      canvas.height !== Math.round(height * ratio)
    ) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const { attention, network } = flowColours({ dark: dark() });
    figure.style.setProperty("--attention", attention);
    figure.style.setProperty("--network", network);
    const context = pen(canvas);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const scale = ratio * stage.zoom;
    context.setTransform(scale, 0, 0, scale, 0, stage.top * ratio);
    paint(context, sceneNow());
    figure.lastDrawn = { map, place, ghost: ghostOf(before, map), items: walk.items() };
  }

  /** All items at their final positions. */
  const placed = () =>
    new Map(scene(mapNow(), opened, place, size).map((item) => [item.name, item]));

  /** The data; while the model generates, with the next words of its current pass. */
  function mapNow() {
    const writing = player.writing();
    return writing ? { ...map, next: writing.pass.next } : map;
  }

  /** Redraw after the playback has advanced. */
  function onPlay() {
    if (!size) return;
    if (!walk.isMoving()) walk.place(placed());
    draw();
    if (readout.textContent !== reading()) tell(); // a pass has started, or the last one has ended
  }

  /** The text of the readout. */
  function reading() {
    const { edges, selected } = flowNow();
    return describe({ map: mapNow(), opened, place }, pointed, edges, selected);
  }

  /** Lay everything out for the current place, and animate it. */
  function arrange(animated = true) {
    if (!size) return; // the weights aren't unpacked yet; `measure` will do this later
    walk.to(placed(), animated && !still);
    tell();
  }

  // ---- the location in the picture and in the address

  /** @param {Partial<Place>} change @param {boolean} lit whether to highlight the curve of its pair */
  function go(change, lit = false) {
    place = { ...place, ...change };
    const open = opened?.layer === place.layer && opened.head === place.head;
    pointed = lit ? pairNow() : null;
    hush();
    if (place.level !== "whole" && !open) askForPlace();
    else if (!map.away && !isTold && placeNow() !== figure.dataset.asked)
      asking = setTimeout(askForPlace, QUIET_MS);
    why.show(place.why);
    slider.value = String(place.detail);
    arrange();
  }

  /** The curve of the tour's word pair in this layer. @returns {Pointed | null} */
  function pairNow() {
    const { layer, row, column } = place;
    const edge = allEdges.find(
      (each) => each.layer === layer && each.query === row && each.key === column,
    );
    return edge ? { kind: "edge", edge } : null;
  }

  /** Whether the tour's head is open, the one that carries the strongest curve. */
  const isTourOpen = () =>
    opened?.layer === (map.first.layer ?? place.layer) &&
    opened.head === (map.first.head ?? place.head);

  /** The place as written in the address. */
  function placeNow() {
    const { level, matrix, layer, head, row, column, token, detail, why } = place;
    const told = figure.dataset.told ?? -1;
    return [level, matrix, layer, head, row, column, token, told, detail, why].join(" ");
  }

  /** Cancel the pending request. */
  function hush() {
    clearTimeout(asking);
    asking = 0;
  }

  /**
   * Send a message to the server immediately. If two messages are sent before it responds, the second
   * replaces the first, so a place isn't sent until the response, which calls this component again.
   * @param {string} what @param {string} value
   */
  function tellServer(what, value) {
    hush();
    isTold ||= what !== "place";
    setTriggerValue(what, value);
  }

  /** Tell the server which parts are open, so that it sends their numbers and updates the address. */
  function askForPlace() {
    hush();
    const at = (figure.dataset.asked = placeNow()),
      { layer, head } = place;
    if (map.away) openPage({ at, layer, head, ...map.away });
    else tellServer("place", at);
  }

  /** @param {Record<string, string | number>} view parameters for the "One pass" page */
  function openPage(view) {
    window.attentionLabWalksIn = true;
    const address = new URL("one-pass", location.href);
    for (const name in view) address.searchParams.set(`one_pass_${name}`, String(view[name]));
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate")); // makes Streamlit open the page in the address
  }

  /** After the text has changed, tell the server which parts are open and which word is selected. */
  function tellOfAnotherText() {
    if (!before || sameText(before.map, map) || map.away) return;
    const open = opened?.layer === place.layer && opened.head === place.head,
      known = map.place?.token ?? map.first.token;
    if (place.level !== "whole" && !open) askForPlace();
    else if (place.token !== known) asking = setTimeout(askForPlace, QUIET_MS);
  }

  /** Move the focus here when a visitor comes from another page's picture, as soon as it's visible. */
  function goOnByKeyboard() {
    if (!window.attentionLabWalksIn || map.away || !canvas.isConnected) return;
    if (!canvas.checkVisibility({ visibilityProperty: true })) {
      requestAnimationFrame(goOnByKeyboard);
      return;
    }
    delete window.attentionLabWalksIn;
    canvas.focus({ preventScroll: true });
  }

  const LEVELS = /** @type {Level[]} */ (["whole", "layer", "head", "matrix"]);
  const outwards = () => go({ level: LEVELS[Math.max(LEVELS.indexOf(place.level) - 1, 0)] });

  /** Go one level deeper, or from a selected curve to the head that carries it. */
  function deeper() {
    if (pointed?.kind === "edge") openEdge(pointed.edge);
    else go({ level: LEVELS[Math.min(LEVELS.indexOf(place.level) + 1, 3)] });
  }

  /** Open the head that carries most of an edge, at its word pair. @param {Edge} edge */
  function openEdge({ layer, query, key, heads }) {
    const head = heads[0]?.[0] ?? place.head;
    go({ level: "head", matrix: "weights", layer, head, row: query, column: key });
  }

  // ---- switching parts off

  /** The part that the switch button controls here: a head, a feed-forward network, or none. */
  function partHere() {
    if (place.level === "whole") return "";
    return place.level === "layer" ? `F${place.layer}` : `L${place.layer}H${place.head}`;
  }

  /** @param {string} part */
  function toggle(part) {
    const off = new Set(map.off);
    if (!off.delete(part)) off.add(part);
    tellServer("switched", [...off].sort().join(" ") || "nothing");
  }

  function tellSwitches() {
    const part = partHere(),
      isOff = (/** @type {string} */ name) => map.off.includes(name);
    const inside = inHead(place),
      what = inside ? "head" : "feed-forward";
    const show = (/** @type {string} */ selector, /** @type {boolean} */ there, text = "") => {
      button(selector).hidden = !there || !!map.lookOnly;
      if (text) button(selector).textContent = text;
    };
    show(".switch-part", !!part, `Switch ${what} ${isOff(part) ? "on" : "off"}`);
    const mask = `Switch mask ${isOff("mask") ? "on" : "off"}`;
    show(".switch-mask", inside && map.decoder, mask);
    show(".switch-scale", inside, `Switch ÷ √d ${isOff("scale") ? "on" : "off"}`);
    show(".all-on", map.off.length > 0);
    show(".write", !!map.next && !map.play && !map.off.length && !map.away);
    find(".next").hidden = !map.next || !!map.away; // only the "One pass" page has space for this
  }

  function tell() {
    tellSwitches();
    readout.textContent = reading();
    const writing = player.writing();
    find(".title").textContent =
      writing && !writing.ends ? `The model reads “${map.labels[writing.rows - 1]}”` : map.title;
    const { level, layer, head, matrix } = place;
    const steps = ["All layers", `Layer ${layer}`, `Head L${layer}H${head}`, matrix];
    find(".where").textContent = steps.slice(0, LEVELS.indexOf(level) + 1).join(" › ");
    button(".out").hidden = level === "whole";
    find(".where").hidden = level === "whole";
    find(".marks").hidden = level !== "whole";
    find(".detail-of").hidden = level !== "whole";
    button(".explain").hidden = !map.numbers.why_heads || level !== "whole" || place.why >= 0;
    canvas.dataset.place = `${level} ${layer} ${head} ${matrix} ${place.row} ${place.column} ${place.token}`;
    const last = figure.lastDrawn;
    if (last && sameModel(last.map, map)) last.place = place;
  }

  // ---- pointing, and the keyboard

  /** @param {PointerEvent} event @returns {Pointed | null} */
  function under(event) {
    if (!size) return null; // the weights aren't unpacked yet
    const { left, top } = canvas.getBoundingClientRect();
    return pointedAt(
      sceneNow(),
      (event.clientX - left) / stage.zoom,
      (event.clientY - top - stage.top) / stage.zoom,
    );
  }

  /** @param {Pointed | null} hit */
  function pointTo(hit) {
    pointed = hit;
    if (hit?.kind === "cell")
      place = { ...place, matrix: hit.tensor, row: hit.row, column: hit.column };
    draw();
    tell();
  }

  /** @param {PointerEvent} event */
  function onClick(event) {
    const hit = under(event);
    if (hit?.kind === "word") go({ token: hit.token });
    if (hit?.kind === "next" && map.numbers.why_heads)
      go({ why: hit.choice === place.why ? -1 : hit.choice });
    if (hit?.kind === "edge") openEdge(hit.edge);
    if (hit?.kind === "layer" || hit?.kind === "dot") go({ level: "layer", layer: hit.layer });
    if (hit?.kind === "tile")
      go({ head: hit.head, level: hit.head === place.head ? "head" : "layer" });
    if (hit?.kind === "cell")
      go({ level: "matrix", matrix: hit.tensor, row: hit.row, column: hit.column });
  }

  /** @type {(from: Place, by: number) => void} go to the next layer, or to the next head in a layer */
  function turn(from, by) {
    const part = from.level === "layer" ? "layer" : "head",
      next = from[part] + by,
      count = part === "layer" ? map.layers : map.heads;
    if (from.level !== "whole" && next >= 0 && next < count) go({ ...from, [part]: next });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Enter") deeper();
    else if (event.key === "Escape" && place.level !== "whole") outwards();
    else if (event.key === "Escape" && place.why >= 0) go({ why: -1 });
    else if (event.key in ARROWS) {
      const to = moveByArrowKey(sceneNow(), event.key);
      if (to.place) go(to.place);
      if (to.pointed) pointTo(to.pointed);
    } else return;
    event.preventDefault();
  }

  function receive() {
    opened = window.attentionLabOpened?.get(map.picture) ?? null;
    images.forget();
    if (!size) return; // the rest is done when the weights are unpacked
    arrange();
    retell();
  }

  /**
   * Update the tour's caption for the open parts. The server opened this view, so don't send it another
   * request.
   */
  function retell() {
    if (!opened) return;
    const isLed = !asking;
    const waited = story.retell(opened.captions);
    if (!isLed || waited) return; // the visitor has taken a step that the server doesn't know about yet
    hush();
    figure.dataset.asked = placeNow();
  }

  function measure(animated = false) {
    stage = presented.stage();
    size = sizeOf(map, stage.width, stage.room, stage.most);
    arrange(animated);
  }

  figure.dataset.told ??= String(map.place?.told ?? -1);
  figure.dataset.asked ??= placeNow();
  const presented = createPresenter(
    figure,
    listen,
    () => {
      const inside = place.level !== "whole";
      if (inside) outwards();
      return inside;
    },
    () => size && measure(),
  );
  const player = createPlayer(figure, listen, map.play ?? null, still, onPlay, (what) => {
    if (map.away) openPage({ new: 6, ...map.away });
    else tellServer("written", what);
  });
  const why = createExplainer(
    figure,
    listen,
    map,
    ({ layer = 0, head = 0, key = 0 }) =>
      go({ level: "head", matrix: "weights", layer, head, row: tokens - 1, column: key }),
    (choice) => go({ why: choice }),
  );
  const story = createTour(parentElement, figure, listen, go, isTourOpen, () => {
    place = { ...place, ...map.first, why: -1 };
    askForPlace();
  });
  listen(canvas, "pointermove", (event) => pointTo(under(event)));
  listen(canvas, "pointerleave", (event) => event.pointerType === "mouse" && pointTo(null));
  listen(canvas, "click", onClick);
  listen(canvas, "keydown", onKey);
  createSwiper(canvas, listen, () => place, turn);
  listen(canvas, "transitionend", draw); // the theme changed
  listen(find(".out"), "click", outwards);
  listen(find(".explain"), "click", () => go({ why: 0 }));
  listen(find(".switch-part"), "click", () => toggle(partHere()));
  listen(find(".switch-mask"), "click", () => toggle("mask"));
  listen(find(".switch-scale"), "click", () => toggle("scale"));
  listen(find(".all-on"), "click", () => tellServer("switched", "nothing"));
  listen(slider, "input", () => go({ detail: Number(slider.value) }));
  for (const selector of [".temperature", ".top-k"]) {
    listen(find(selector), "input", () => {
      next.show();
      draw();
    });
    listen(find(selector), "change", () => {
      if (!map.away && !map.lookOnly) tellServer("sampled", next.value());
    });
  }
  listen(window, "attention-lab-opened", receive);
  const stopWatching = onResize(holder, measure);
  offerTools(parentElement, listen, {
    keys:
      "Up and down select a word, and left and right select one of its curves. Enter zooms in, and " +
      "Escape goes back. Inside, the arrow keys move from head to head or from cell to cell.",
    table: () => [
      ["from", "to", "layer", "share of the update", "strongest head"],
      ...allEdges
        .toReversed()
        .map(({ layer, query, key, share, heads }) => [
          ...[map.labels[key], map.labels[query], layer, share],
          heads.length ? `L${layer}H${heads[0][0]}` : "",
        ]),
    ],
    picture: () =>
      size && {
        draw: (context) => paint(context, sceneNow()),
        ...{ width: size.width, height: size.height, element: canvas },
        ...{
          title: map.title,
          about: map.about,
          name: "one-pass",
          says: opened && inHead(place) ? opened.says : map.says,
        },
      },
    failed: (text) => {
      readout.textContent = text;
    },
  });
  find(".subtitle").textContent = map.subtitle;
  button(".explain").textContent = `Why “${isolated(map.next?.[0] ?? "")}”?`;
  canvas.setAttribute(
    "aria-label",
    `${map.title} Up and down select a word, left and right select one of its curves, Enter zooms in, ` +
      "and Escape goes back.",
  );
  slider.value = String(place.detail);
  opened = window.attentionLabOpened?.get(map.picture) ?? null;
  inflate(map.body).then((inflated) => {
    codes = inflated;
    measure(!!before);
    why.show(place.why);
    canvas.dataset.painted = "true";
    goOnByKeyboard();
    tellOfAnotherText();
    if (figure.dataset.waits && !asking && !map.away && placeNow() !== figure.dataset.asked)
      asking = setTimeout(askForPlace, QUIET_MS);
    delete figure.dataset.waits;
    retell();
    markHeightFinal(parentElement);
  });

  return replaceLast(parentElement, () => {
    walk.stop();
    player.stop();
    if (asking) figure.dataset.waits = "true"; // the next drawing sends this place
    clearTimeout(asking);
    stopWatching();
    presented.stop();
    forget();
  });
}
