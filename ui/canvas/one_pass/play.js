// @ts-check
// Plays the passes of a model that continues the text, with or without a KV cache.

const MAX_PASS_MS = 1500, // passes are played in proportion to their measured times
  QUICKEST_PASS_MS = 240,
  FLIGHT_MS = 420; // the chosen token's flight back to the text

/**
 * A pass from pages/start/one_pass/writing.py. The first number of each pair is with the cache.
 * @typedef {{
 *   rows: [number, number], products: [number, number], seconds: [number, number],
 *   next: string[], shares: number[], chosen: string,
 * }} PlayedPass
 */
/** @typedef {{ prompt: number, passes: PlayedPass[] }} Played */
/**
 * The state of a model that continues the text. `rows`: the number of tokens so far. Tokens from `first`
 * on are being processed and have passed through this `share` of the layers; earlier ones only provide
 * their cached keys and values. `flight`: the progress of the chosen token's flight back to the text.
 * @typedef {{
 *   rows: number, first: number, share: number, flight: number, pass: PlayedPass, ends: boolean,
 * }} Writing
 */
/** @typedef {{ of: string, pass: number, time: number, cached: boolean, runs: boolean }} PlayState */

/** @type {(count: number) => string} */
function plural(count) {
  const [size, name] = count < 1e9 ? [1e6, "million"] : [1e9, "billion"];
  return `${number(count / size, 3)} ${name}`;
}

/** @type {(seconds: number) => string} */
const lasting = (seconds) =>
  seconds < 1 ? `${number(seconds * 1000, 3)} ms` : `${number(seconds, 3)} s`;

/** @type {(count: number, noun: string) => string} */
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** @type {(passes: PlayedPass[], pass: number, cached: boolean) => string} the cost of a pass in words */
function timingSummary(passes, pass, cached) {
  const { rows, products, seconds } = passes[pass];
  const took = (/** @type {number} */ way) =>
    `${counted(rows[way], "token")}, ${plural(products[way])} multiplications, ${lasting(seconds[way])}`;
  const total = (/** @type {number} */ way) =>
    passes.slice(0, pass + 1).reduce(
      (sum, each) => ({
        products: sum.products + each.products[way],
        seconds: sum.seconds + each.seconds[way],
      }),
      { products: 0, seconds: 0 },
    );
  const [own, other] = cached ? [0, 1] : [1, 0],
    names = ["With the cache", "Without the cache"];
  const sums = [total(own), total(other)].map(
    ({ products, seconds }) => `${plural(products)} in ${lasting(seconds)}`,
  );
  return (
    `Step ${pass + 1} of ${passes.length}. ${names[own]}: ${took(own)}. ` +
    `${names[other]}: ${took(other)}. Total so far: ${sums[0]}, compared with ${sums[1]}.`
  );
}

/**
 * The buttons that play the passes. `changed` is called when the picture must be redrawn; `ask` tells
 * the server to continue the text ("on") or to go back ("off").
 * @type {(figure: HTMLElement & { played?: PlayState }, listen: Listen, played: Played | null,
 *         still: boolean, changed: () => void, ask: (what: string) => void) =>
 *         { writing: () => Writing | null, stop: () => void }}
 */
function createPlayer(figure, listen, played, still, changed, ask) {
  const bar = element(figure, ".play"),
    find = (/** @type {string} */ selector) => element(bar, selector),
    box = /** @type {HTMLInputElement} */ (find(".play-cached")),
    passes = played?.passes ?? [];
  const slowest = Math.max(...passes.flatMap(({ seconds }) => seconds));
  let frame = 0,
    last = 0;
  // Streamlit creates the picture again, with the same passes, when the visitor opens a part of it.
  const of = JSON.stringify(passes.map(({ chosen }) => chosen));
  const kept = figure.played?.of === of ? figure.played : null;
  /** @type {PlayState} time: 0 to 1 through the layers, 1 to 2 back to the text */
  const state = kept ?? { of, pass: 0, time: 0, cached: box.checked, runs: !still };
  figure.played = state;
  const isLast = () => state.pass === passes.length - 1;

  /** @returns {Writing | null} */
  function writing() {
    if (!played) return null;
    const { pass, time, cached } = state,
      rows = played.prompt + pass;
    return {
      rows,
      first: cached && pass ? rows - 1 : 0,
      share: Math.min(time, 1),
      flight: Math.max(time - 1, 0),
      pass: passes[pass],
      ends: isLast() && time >= 1,
    };
  }

  /** @param {number} now */
  function step(now) {
    const { seconds } = passes[state.pass];
    const measured = (MAX_PASS_MS * seconds[state.cached ? 0 : 1]) / slowest;
    const long = state.time < 1 ? Math.max(measured, QUICKEST_PASS_MS) : FLIGHT_MS;
    const most = isLast() || state.time < 1 ? 1 : 2;
    state.time = Math.min(state.time + (last ? now - last : 0) / long, most);
    last = now;
    if (state.time >= 2) begin(state.pass + 1);
    else if (state.time === 1 && isLast()) state.runs = false;
    else if (state.time === 1) state.time = 1.0001; // the flight begins
    tell();
    changed();
    frame = state.runs ? requestAnimationFrame(step) : 0;
  }

  /** @param {number} pass */
  function begin(pass) {
    state.pass = Math.min(pass, passes.length - 1);
    state.time = 0;
  }

  function run() {
    last = 0;
    if (state.runs && !frame) frame = requestAnimationFrame(step);
  }

  /** Show a pass in its final state, after all layers. */
  function show(/** @type {number} */ pass) {
    begin(Math.max(pass, 0));
    state.time = 1;
    state.runs = false;
    tell();
    changed();
  }

  function tell() {
    find(".play-run").textContent = state.runs ? "Pause" : "Play";
    find(".play-before").toggleAttribute("disabled", state.pass === 0);
    find(".play-next").toggleAttribute("disabled", isLast() && state.time >= 1);
    const said = timingSummary(passes, state.pass, state.cached);
    if (find(".play-says").textContent !== said) find(".play-says").textContent = said;
    bar.dataset.pass = `${state.pass + 1} ${state.time >= 1 ? "done" : "runs"}`;
  }

  bar.hidden = !played;
  listen(element(figure, ".write"), "click", () => ask("on"));
  listen(find(".play-end"), "click", () => ask("off"));
  if (played) {
    listen(find(".play-run"), "click", () => {
      state.runs = !state.runs;
      if (state.runs && isLast() && state.time >= 1) begin(0);
      tell();
      run();
    });
    listen(find(".play-next"), "click", () => show(state.time >= 1 ? state.pass + 1 : state.pass));
    listen(find(".play-before"), "click", () => show(state.pass - 1));
    listen(box, "change", () => {
      state.cached = box.checked;
      begin(0);
      state.runs = !still;
      if (still) show(0);
      else run();
    });
    if (still && !kept) show(0);
    tell();
    run();
  }
  return { writing, stop: () => cancelAnimationFrame(frame) };
}
