// @ts-check
// Probabilities of the next token at the temperature and top-k of the two sliders.

/**
 * `probabilities`: those of the most likely next words. `ghosts`: the same before parts were
 * switched off, or without temperature and top-k. `show`: show the sliders' values.
 * @typedef {{
 *   probabilities: () => number[], ghosts: () => number[], show: () => void, value: () => string,
 * }} NextWords
 */

/** @type {(figure: HTMLElement, map: PassData, ghost: PassData | null) => NextWords} */
function nextWords(figure, map, ghost) {
  const input = (/** @type {string} */ selector) =>
    /** @type {HTMLInputElement} */ (element(figure, selector));
  const temperature = () => Number(input(".temperature").value) / 10,
    topK = () => Number(input(".top-k").value),
    all = map.next?.length ?? 0;

  /** @type {(temperature: number, topK: number) => number[]} */
  function at(temperature, topK) {
    if (!map.next) return [];
    // the sum over the whole vocabulary is known for each tenth of the temperature
    const logSum = map.numbers.log_sums.values[Math.round(10 * temperature) - 1];
    const shares = Array.from(map.numbers.next_logits.values, (logit) =>
      Math.exp(logit / temperature - logSum),
    );
    if (topK >= shares.length) return shares;
    const left = shares.slice(0, topK).reduce((sum, share) => sum + share, 0);
    return shares.map((share, choice) => (choice < topK ? share / left : 0));
  }

  /** Compare with the previous pass only if parts were switched off; a new text has different words. */
  function ghosts() {
    if (!ghost || !map.off.length) return at(1, Infinity);
    const { next_logits, log_sums } = ghost.numbers;
    return (map.next ?? []).map((text) => {
      const choice = ghost.next?.indexOf(text) ?? -1;
      return choice < 0 ? 0 : Math.exp(next_logits.values[choice] - log_sums.values[9]);
    });
  }

  function show() {
    const say = (/** @type {string} */ selector, /** @type {string} */ text) => {
      const value = input(selector).nextElementSibling;
      if (value) value.textContent = text;
    };
    say(".temperature", temperature().toFixed(1));
    say(".top-k", topK() < all ? String(topK()) : "off");
  }

  element(figure, ".next").hidden = !map.next;
  if (map.next) {
    input(".top-k").max = String(all);
    input(".top-k").value = String(map.topK ?? all);
    input(".temperature").value = String(Math.round(10 * (map.temperature ?? 1)));
    show();
  }
  return {
    probabilities: () => at(temperature(), topK()),
    ghosts,
    show,
    value: () => `${input(".temperature").value} ${topK()}`,
  };
}
