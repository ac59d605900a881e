// @ts-check
// One whole pass of a model on one canvas that one can walk into: the whole, a layer, a head, a
// matrix, a cell. All text reaches the page through textContent or fillText.

const WALK_MS = 320,
  QUIET_MS = 600; // after the last step its place is written into the address

/** @param {StreamlitComponent & { key?: string }} component */
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const find = (/** @type {string} */ selector) => element(parentElement, selector);
  const input = (/** @type {string} */ selector) =>
    /** @type {HTMLInputElement} */ (find(selector));
  const canvas = canvasElement(parentElement, ".scroll canvas"),
    holder = find(".scroll"),
    readout = find(".readout"),
    { listen, forget } = hearing();
  /** @type {PassData} */
  const map = unpackNumbers(data);
  map.largestAdded = Math.max(
    ...["attention_norms", "mlp_norms"].map((tensor) => extent(map.numbers[tensor].values)),
  );
  const tokens = map.labels.length,
    perHead = map.causal ? (tokens * (tokens + 1)) / 2 : tokens * tokens;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  /** @type {Map<string, HTMLCanvasElement>} pictures of matrices, as large as their cells */
  const images = new Map();
  /** @type {Uint8Array} the weights of all heads in steps; none before they are inflated */
  let codes = new Uint8Array();
  /** @type {Opened | null} */
  let opened = null;
  // Streamlit calls this function anew with new data, also before the next frame or under a finger;
  // what the visitor had come to stays.
  const figure = /** @type {HTMLElement & { lastDrawn?: Before }} */ (find(".one-pass"));
  const before = figure.lastDrawn && sameModel(figure.lastDrawn.map, map) ? figure.lastDrawn : null;
  /** @type {Place} */
  let place = before?.place ??
    map.place ?? {
      level: "whole",
      layer: Math.floor(map.layers / 2),
      head: 0,
      matrix: "weights",
      token: tokens - 1,
      row: tokens - 1,
      column: 0,
    };
  if (before && !sameText(before.map, map)) {
    const within = (/** @type {number} */ token) => Math.min(token, tokens - 1);
    place = { ...place, token: tokens - 1, row: within(place.row), column: within(place.column) };
  }
  // elsewhere the settings of the page say which layer and head
  if (map.away && map.place) place = { ...place, layer: map.place.layer, head: map.place.head };
  const ghost = ghostOf(before, map),
    ghostNorms = ghost && lengthsOf(map, ghost),
    cameFrom = before && lengthsOf(map, before.map);
  /** @type {Size} */
  let size;
  /** @type {Stage} */
  let stage;
  /** @type {Map<string, Item>} what is painted now, and where the walk began and goes */
  let items = new Map(),
    /** @type {Map<string, Item>} */ from = new Map(),
    /** @type {Map<string, Item & { origin?: string }>} */ to = new Map();
  let asking = 0, // a timer, of the last step
    isTold = false; // something other than a place
  /** @type {PointerEvent | null} what was pointed at before the weights were unpacked */
  let early = null;
  let began = 0,
    frame = 0;
  // how far the ribbons have come from their old widths
  let flow = cameFrom?.some((length, at) => length !== map.numbers.state_norms.values[at]) ? 0 : 1;

  // ---- numbers

  /** @type {Scene["weight"]} a weight as the picture of all heads holds it */
  function weight(layer, head, row, column) {
    const at = layer * map.heads + head;
    const cell = map.causal ? (row * (row + 1)) / 2 + column : row * tokens + column;
    return map.largest[at] * (codes[at * perHead + cell] / map.levels) ** 2;
  }

  /** @type {Scene["image"]} */
  function image(name, numbers, tone) {
    const key = `${name} ${dark()}`,
      kept = images.get(key);
    if (kept) return kept;
    const tile = name.match(/^tile (\d+) (\d+)$/);
    const [rows, columns] = numbers.shape;
    const picture = document.createElement("canvas");
    picture.width = columns;
    picture.height = rows;
    const pixels = new ImageData(columns, rows);
    for (let at = 0; at < rows * columns; at++) {
      const row = Math.floor(at / columns),
        column = at % columns;
      if ((tile || name === "step weights") && map.causal && column > row) continue;
      const value = tile ? weight(+tile[1], +tile[2], row, column) : numbers.values[at];
      if (value === -Infinity) continue;
      const shown = tile ? Math.sqrt(value / map.largest[+tile[1] * map.heads + +tile[2]]) : value;
      pixels.data.set([...tone(shown), 255].slice(0, 4), 4 * at);
    }
    pen(picture).putImageData(pixels, 0, 0);
    images.set(key, picture);
    return picture;
  }

  const dark = () => bright(rgb(getComputedStyle(canvas).color));

  // ---- drawing and walking

  /** @type {() => Scene} */
  const sceneNow = () => ({
    ...{ map, opened, place, size, items, weight, image, dark: dark() },
    ink: getComputedStyle(canvas).color,
    frames: framesOf({ map, opened, place }),
    norms: normsNow(),
    ghostNorms,
    ...nextNow(),
    writing: written.writing(),
  });

  /** What may come next, as it is painted: of a model that writes, what the pass says. */
  function nextNow() {
    const shares = written.writing()?.pass.shares;
    if (shares) return { probabilities: shares, ghosts: shares };
    return { probabilities: probabilitiesAt(temperature(), topK()), ghosts: ghosts() };
  }

  /** @type {(temperature: number, topK: number) => number[]} of the likeliest next tokens */
  function probabilitiesAt(temperature, topK) {
    if (!map.next) return [];
    // the sum over the whole vocabulary is known for each tenth of a degree
    const logSum = map.numbers.log_sums.values[Math.round(10 * temperature) - 1];
    const all = Array.from(map.numbers.next_logits.values, (logit) =>
      Math.exp(logit / temperature - logSum),
    );
    if (topK >= all.length) return all;
    const left = all.slice(0, topK).reduce((sum, share) => sum + share, 0);
    return all.map((share, choice) => (choice < topK ? share / left : 0));
  }

  /** The probabilities of the same tokens before something was changed. */
  function ghosts() {
    if (!ghost) return probabilitiesAt(1, Infinity);
    const { next_logits, log_sums } = ghost.numbers;
    return (map.next ?? []).map((text) => {
      const choice = ghost.next?.indexOf(text) ?? -1;
      return choice < 0 ? 0 : Math.exp(next_logits.values[choice] - log_sums.values[9]);
    });
  }

  /** The lengths of the residual stream, on their way from what was drawn before. */
  function normsNow() {
    const now = map.numbers.state_norms.values,
      then = flow < 1 ? cameFrom : null;
    return then
      ? now.map((norm, at) => (then[at] >= 0 ? then[at] + (norm - then[at]) * flow : norm))
      : now;
  }

  const temperature = () => Number(input(".temperature").value) / 10,
    topK = () => Number(input(".top-k").value);

  /** Say what the controls of the next token are at. */
  function tellNext() {
    const all = map.next?.length ?? 0;
    const say = (/** @type {string} */ selector, /** @type {string} */ text) => {
      const said = input(selector).nextElementSibling;
      if (said) said.textContent = text;
    };
    say(".temperature", temperature().toFixed(1));
    say(".top-k", topK() < all ? String(topK()) : "off");
    draw();
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
    const context = pen(canvas);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const scale = ratio * stage.zoom;
    context.setTransform(scale, 0, 0, scale, 0, stage.top * ratio);
    paint(context, sceneNow());
    figure.lastDrawn = { map, place, ghost, items };
  }

  /** @type {() => Map<string, Item & { origin?: string }>} everything where it lies in the end */
  const placed = () =>
    new Map(scene(mapNow(), opened, place, size).map((item) => [item.name, item]));

  /** While a model writes the whole picture says what its pass says. */
  function mapNow() {
    const writing = written.writing();
    return writing
      ? { ...map, next: writing.pass.next, guesses: writing.ends ? map.guesses : [] }
      : map;
  }

  /** The pass that is played has come further. */
  function onPlay() {
    if (!size) return;
    if (!frame) items = placed();
    draw();
    if (readout.textContent !== reading()) tell(); // a pass has begun, or the last has ended
  }

  /** What is read; while a model writes, of no token that is not there yet. */
  function reading() {
    const rows = written.writing()?.rows ?? Infinity,
      token = Math.min(place.token, rows - 1);
    return readingOf({ map: mapNow(), opened, place: { ...place, token } });
  }

  /** Whether something lies elsewhere now, or is new, or gone. */
  function moves() {
    const parts = /** @type {const} */ (["x", "y", "w", "h", "alpha"]);
    return (
      flow < 1 ||
      items.size !== to.size ||
      [...to].some(([name, end]) => parts.some((part) => items.get(name)?.[part] !== end[part]))
    );
  }

  /** Lay everything out for the place, and go there. */
  function walk(animated = true) {
    if (!size) return; // the weights are not unpacked yet: `measure` goes there then
    from = new Map(items);
    setOut();
    began = performance.now();
    if (!animated || still || !items.size || !moves()) {
      items = new Map(to);
      flow = 1;
      draw();
    } else if (!frame) frame = requestAnimationFrame(step);
    tell();
  }

  /** Where everything goes; what is new sets out where it comes from. */
  function setOut() {
    to = placed();
    for (const [name, item] of to) {
      if (from.has(name)) continue;
      const origin = from.get(item.origin ?? "") ?? item;
      from.set(name, { ...item, x: origin.x, y: origin.y, w: origin.w, h: origin.h, alpha: 0 });
    }
  }

  /** @param {number} now */
  function step(now) {
    const share = Math.min((now - began) / WALK_MS, 1),
      eased = share * share * (3 - 2 * share);
    const between = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * eased;
    items = new Map();
    for (const [name, start] of from) {
      const end = to.get(name) ?? { ...start, alpha: 0 };
      if (share === 1 && !to.has(name)) continue;
      items.set(name, {
        ...end,
        x: between(start.x, end.x),
        y: between(start.y, end.y),
        w: between(start.w, end.w),
        h: between(start.h, end.h),
        alpha: between(start.alpha, end.alpha),
      });
    }
    flow = Math.max(flow, eased);
    frame = share < 1 ? requestAnimationFrame(step) : 0;
    draw();
    canvas.toggleAttribute("data-walking", share < 1);
  }

  /** @param {Partial<Place>} change */
  function go(change) {
    place = { ...place, ...change };
    const open = opened?.layer === place.layer && opened.head === place.head;
    hush();
    if (place.level !== "whole" && !open) askForPlace();
    else if (!map.away && !isTold && placeNow() !== figure.dataset.asked)
      asking = setTimeout(askForPlace, QUIET_MS);
    walk();
  }

  /** The place as the address writes it. */
  function placeNow() {
    const { level, matrix, layer, head, row, column, token } = place;
    const told = figure.dataset.told ?? -1;
    return [level, matrix, layer, head, row, column, token, told].join(" ");
  }

  /** Ask for nothing any more. */
  function hush() {
    clearTimeout(asking);
    asking = 0;
  }

  /**
   * Tell the server at once. Of two things told before it listens the later replaces the other, so
   * that a place waits until it has answered, which calls this whole drawing anew.
   * @param {string} what @param {string} value
   */
  function tellServer(what, value) {
    hush();
    isTold ||= what !== "place";
    setTriggerValue(what, value);
  }

  /** Tell the server where the visitor is: it sends the layer and the head, and writes the address. */
  function askForPlace() {
    hush();
    const at = (figure.dataset.asked = placeNow()),
      { layer, head } = place;
    if (map.away) openPage({ at, layer, head, ...map.away });
    else tellServer("place", at);
  }

  /** @param {Record<string, string | number>} view what the page of this picture is opened with */
  function openPage(view) {
    window.attentionLabWalksIn = true;
    const address = new URL("one-pass", location.href);
    for (const name in view) address.searchParams.set(`one_pass_${name}`, String(view[name]));
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate")); // Streamlit opens the page that the address names
  }

  /** Whoever has walked in on another page goes on by keyboard, as soon as the picture is shown. */
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
  const deeper = () => go({ level: LEVELS[Math.min(LEVELS.indexOf(place.level) + 1, 3)] });
  const outwards = () => go({ level: LEVELS[Math.max(LEVELS.indexOf(place.level) - 1, 0)] });

  // ---- switching parts off

  const button = (/** @type {string} */ selector) =>
    /** @type {HTMLButtonElement} */ (find(selector));

  /** The part that a button switches at this place: a head, a feed-forward network, or none. */
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

  /** Temperature and top-k stand in the address, and choose what is written. */
  function tellSampling() {
    if (!map.away && !map.lookOnly)
      tellServer("sampled", `${input(".temperature").value} ${topK()}`);
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
    const mask = isOff("mask") ? "Mask on" : "Mask off";
    show(".switch-mask", inside && map.decoder, mask);
    show(".switch-scale", inside, isOff("scale") ? "÷ √d on" : "÷ √d off");
    show(".all-on", map.off.length > 0);
    show(".write", !!map.next && !map.play && !map.off.length);
  }

  function tell() {
    tellSwitches();
    readout.textContent = reading();
    const { level, layer, head, matrix } = place;
    const steps = ["The whole pass", `Layer ${layer}`, `Head L${layer}H${head}`, matrix];
    find(".where").textContent = steps.slice(0, LEVELS.indexOf(level) + 1).join(" › ");
    /** @type {HTMLButtonElement} */ (find(".out")).disabled = level === "whole";
    canvas.dataset.place = `${level} ${layer} ${head} ${matrix} ${place.row} ${place.column} ${place.token}`;
    const last = figure.lastDrawn;
    if (last && sameModel(last.map, map)) last.place = place;
  }

  // ---- pointing, and the keyboard

  /** @type {(event: PointerEvent) => [number, number]} where that is in the layout */
  function pointed(event) {
    const { left, top } = canvas.getBoundingClientRect();
    return [(event.clientX - left) / stage.zoom, (event.clientY - top - stage.top) / stage.zoom];
  }

  /** @type {(event: PointerEvent) => { item: Item, row: number, column: number } | null} */
  function under(event) {
    if (!size) return null; // the weights are not unpacked yet
    const [px, py] = pointed(event);
    const hits = [...items.values()].filter(
      ({ x, y, w, h, alpha }) => alpha > 0.5 && px >= x && px < x + w && py >= y && py < y + h,
    );
    const item = hits.sort((a, b) => b.rank - a.rank)[0];
    if (!item) return null;
    const shape = opened?.numbers[item.tensor ?? ""]?.shape ?? [tokens, 1];
    return {
      item,
      row: Math.floor(((py - item.y) / item.h) * shape[0]),
      column: Math.floor(((px - item.x) / item.w) * shape[1]),
    };
  }

  /** @param {PointerEvent} event */
  function onMove(event) {
    if (!size) early = event;
    const hit = under(event);
    if (!hit) return;
    const { item, row, column } = hit;
    const across = pointed(event)[size.phone ? 0 : 1],
      token = Math.floor((across - size.first) / size.pitch);
    if (item.kind === "matrix")
      place = { ...place, matrix: item.tensor ?? place.matrix, row, column };
    else if (token >= 0 && token < tokens)
      place = {
        ...place,
        token,
        ...(item.kind === "slab" && place.level === "whole" ? { layer: item.layer } : {}),
      };
    draw();
    tell();
  }

  /** @param {PointerEvent} event */
  function onClick(event) {
    const hit = under(event);
    if (!hit) return;
    const { item, row, column } = hit;
    if (item.kind === "chip" && map.follow) tellServer("followed", String(item.token));
    if (item.kind === "slab") go({ level: "layer", layer: item.layer });
    if (item.kind === "tile")
      go({ head: item.head, level: item.head === place.head ? "head" : "layer" });
    if (item.kind === "matrix") go({ level: "matrix", matrix: item.tensor, row, column });
  }

  /** @type {(from: Place, by: number) => void} to the next layer, or to the next head in one */
  function turn(from, by) {
    const part = from.level === "layer" ? "layer" : "head",
      next = from[part] + by,
      count = part === "layer" ? map.layers : map.heads;
    if (from.level !== "whole" && next >= 0 && next < count) go({ ...from, [part]: next });
  }

  /** @type {Record<string, [number, number]>} */
  const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const clamp = (/** @type {number} */ value, /** @type {number} */ count) =>
      Math.min(Math.max(value, 0), count - 1);
    if (event.key === "Enter") deeper();
    else if (event.key === "Escape" && place.level !== "whole") outwards();
    else if (event.key in ARROWS) {
      const [down, right] = ARROWS[event.key];
      if (place.level === "whole")
        go({
          token: clamp(place.token + down, tokens),
          layer: clamp(place.layer + right, map.layers),
        });
      else if (place.level === "layer")
        go({
          token: clamp(place.token + down, tokens),
          head: clamp(place.head + right, map.heads),
        });
      else {
        const shape = opened?.numbers[place.matrix]?.shape ?? [1, 1];
        if (place.level === "matrix")
          go({
            row: clamp(place.row + down, shape[0]),
            column: clamp(place.column + right, shape[1]),
          });
        else {
          const at = STEPS.findIndex(({ tensor }) => tensor === place.matrix);
          go({
            matrix: STEPS[clamp(at + right + 5 * down, STEPS.length)].tensor,
            row: 0,
            column: 0,
          });
        }
      }
    } else return;
    event.preventDefault();
  }

  function receive() {
    opened = window.attentionLabOpened?.get(map.picture) ?? null;
    for (const name of images.keys()) if (name.startsWith("step ")) images.delete(name);
    if (!size) return; // what follows is done once the weights are unpacked
    if (frame) {
      setOut(); // it joins the walk that is under way
      tell();
    } else walk();
    retell();
  }

  /** Tell the caption of what is open now. The server, which led there, is not asked again. */
  function retell() {
    if (!opened) return;
    const isLed = !asking;
    const waited = story.retell(opened.captions);
    if (!isLed || waited) return; // the visitor has taken a step that the server does not know yet
    hush();
    figure.dataset.asked = placeNow();
  }

  function measure(animated = flow < 1) {
    stage = presented.stage();
    size = sizeOf(map, stage.width, stage.room, stage.most);
    if (before && !items.size) items = before.items; // the walk goes on from there
    walk(animated);
  }

  figure.dataset.told ??= String(map.place?.told ?? -1);
  figure.dataset.asked ??= placeNow();
  const presented = presenter(
    figure,
    listen,
    () => {
      const inside = place.level !== "whole";
      if (inside) outwards();
      return inside;
    },
    () => size && measure(),
  );
  const written = player(figure, listen, map.play ?? null, still, onPlay, (what) => {
    if (map.away) openPage({ new: 6, ...map.away });
    else tellServer("written", what);
  });
  const story = teller(parentElement, figure, listen, go, askForPlace);
  listen(canvas, "pointermove", onMove);
  listen(canvas, "click", onClick);
  listen(canvas, "keydown", onKey);
  swiper(canvas, listen, () => place, turn);
  listen(canvas, "transitionend", draw); // the theme changed
  listen(find(".out"), "click", outwards);
  listen(find(".switch-part"), "click", () => toggle(partHere()));
  listen(find(".switch-mask"), "click", () => toggle("mask"));
  listen(find(".switch-scale"), "click", () => toggle("scale"));
  listen(find(".all-on"), "click", () => tellServer("switched", "nothing"));
  for (const slider of [".temperature", ".top-k"]) {
    listen(find(slider), "input", tellNext);
    listen(find(slider), "change", tellSampling);
  }
  listen(window, "attention-lab-opened", receive);
  const stopWatching = onNewWidth(holder, measure);
  offerToSave(
    parentElement,
    listen,
    () =>
      size && {
        draw: (context) => paint(context, sceneNow()),
        ...{ width: size.width, height: size.height, element: canvas },
        ...{ title: map.title, about: map.about, name: "one-pass" },
        says: opened && to.has("step q") ? opened.says : map.says,
      },
    (text) => {
      readout.textContent = text;
    },
  );
  find(".title").textContent = map.title;
  find(".next").hidden = !map.next;
  if (map.next) {
    input(".top-k").max = String(map.next.length);
    input(".top-k").value = String(map.topK ?? map.next.length);
    input(".temperature").value = String(Math.round(10 * (map.temperature ?? 1)));
    tellNext();
  }
  canvas.setAttribute(
    "aria-label",
    `${map.title}. Arrows go to the next, Enter goes in, Escape out.`,
  );
  opened = window.attentionLabOpened?.get(map.picture) ?? null;
  inflate(map.body).then((inflated) => {
    codes = inflated;
    measure(!!before);
    if (early) onMove(early);
    canvas.dataset.painted = "true";
    goOnByKeyboard();
    retell();
    hasItsHeight(parentElement);
  });

  return inPlaceOfTheLast(parentElement, () => {
    cancelAnimationFrame(frame);
    written.stop();
    clearTimeout(asking);
    stopWatching();
    presented.stop();
    forget();
  });
}
