// @ts-check
// Explains why a next word is likely: what each head and each other part adds to its logit. The shares
// add up to the logit. They're computed in attention_core/analysis/logit_attribution.py.

const NAMED = { heads: 6, networks: 2 }; // listed separately; the others are summed

/**
 * A part with its share of a logit. `head`, `key`: for heads, its index and the token it reads most
 * from. `network`: true for parts other than attention.
 * @typedef {{
 *   name: string, share: number, layer?: number, head?: number, key?: number, network?: boolean,
 * }} Share
 */

/** @type {(map: PassData, choice: number, tensor: string) => Float32Array} a tensor's numbers for a next word */
function valuesOfChoice({ numbers }, choice, tensor) {
  const {
      shape: [, ...sizes],
      values,
    } = numbers[tensor],
    size = sizes.reduce((product, next) => product * next, 1);
  return values.subarray(choice * size, (choice + 1) * size);
}

const total = (/** @type {Iterable<number>} */ values) =>
  [...values].reduce((sum, value) => sum + value, 0);

/**
 * All parts and their shares of a next word's logit or, with `other`, of its lead over another word's
 * logit.
 * @type {(map: PassData, choice: number, other: number) => Share[]}
 */
function sharesOf(map, choice, other) {
  const shares = (/** @type {string} */ tensor) => {
    const own = valuesOfChoice(map, choice, tensor),
      less = other < 0 ? null : valuesOfChoice(map, other, tensor);
    return less ? own.map((share, at) => share - less[at]) : own;
  };
  const tokens = map.labels.length,
    top = valuesOfChoice(map, choice, "why_top"),
    keys = valuesOfChoice(map, choice, "why_keys");
  const heads = Array.from(shares("why_heads"), (share, at) => {
    const [layer, head] = [Math.floor(at / map.heads), at % map.heads],
      rank = top.indexOf(at);
    const read = rank < 0 ? undefined : strongestOf(keys.subarray(rank * tokens), tokens, share);
    return { name: `L${layer}H${head}`, share, layer, head, key: read };
  });
  const networks = Array.from(shares("why_mlp"), (share, layer) => ({
    name: `feed-forward, layer ${layer}`,
    share,
    layer,
    network: true,
  }));
  const [embedding, attention, norm, output] = shares("why_rest");
  return [
    ...heads,
    ...networks,
    { name: "token embedding", share: embedding, network: true },
    { name: "attention biases", share: attention },
    { name: "bias of the last norm", share: norm, network: true },
    { name: "output bias", share: output, network: true },
  ];
}

/** The key that contributes most to a head's share. @type {(parts: Float32Array, tokens: number, share: number) => number} */
function strongestOf(parts, tokens, share) {
  const sign = share < 0 ? -1 : 1;
  let best = 0;
  for (let key = 1; key < tokens; key++) if (sign * parts[key] > sign * parts[best]) best = key;
  return best;
}

/** The largest parts by name, and the others summed by kind. @type {(all: Share[]) => Share[]} */
function summed(all) {
  const bySize = [...all].sort((a, b) => Math.abs(b.share) - Math.abs(a.share)),
    heads = bySize.filter(({ head }) => head !== undefined),
    networks = bySize.filter(({ layer, head }) => layer !== undefined && head === undefined);
  const others = (/** @type {Share[]} */ parts, /** @type {string} */ kind) => ({
    name: `${parts.length} other ${kind}`,
    share: total(parts.map(({ share }) => share)),
    network: kind !== "heads",
  });
  const rest = [
    others(heads.slice(NAMED.heads), "heads"),
    ...networks.slice(0, NAMED.networks),
    others(networks.slice(NAMED.networks), "feed-forward networks"),
    ...all.filter(({ layer }) => layer === undefined),
  ];
  return [...heads.slice(0, NAMED.heads), ...rest.filter(({ share }) => share !== 0)];
}

/**
 * The panel. `show` fills it for a next word or hides it, `openHead` opens a head at a word pair, and
 * `choose` selects another word to explain, or -1.
 * @type {(figure: HTMLElement, listen: Listen, map: PassData, openHead: (share: Share) => void,
 *         choose: (choice: number) => void) => { show: (choice: number) => void }}
 */
function createExplainer(figure, listen, map, openHead, choose) {
  const panel = element(figure, ".why"),
    list = element(panel, ".shares"),
    word = /** @type {HTMLSelectElement} */ (element(panel, ".why-word")),
    other = /** @type {HTMLSelectElement} */ (element(panel, ".why-other"));
  const count = map.numbers.why_heads?.shape[0] ?? 0,
    names = (map.next ?? []).slice(0, count);
  const option = (/** @type {string} */ text, /** @type {number} */ value) => {
    const made = document.createElement("option");
    made.textContent = text;
    made.value = String(value);
    return made;
  };
  word.replaceChildren(...names.map((name, choice) => option(`“${name}”`, choice)));
  other.replaceChildren(
    option("nothing", -1),
    ...names.map((name, choice) => option(`“${name}”`, choice)),
  );

  /** @type {(part: Share, largest: number) => HTMLElement} */
  function row(part, largest) {
    const line = document.createElement("li"),
      name = document.createElement(part.head === undefined ? "span" : "button"),
      bar = document.createElement("span"),
      value = document.createElement("span");
    const reads = part.key === undefined ? "" : ` reads “${isolated(map.labels[part.key])}”`;
    name.textContent = `${part.name}${reads}`;
    name.className = "part";
    if (part.head !== undefined) listen(name, "click", () => openHead(part));
    bar.className = `share ${part.share < 0 ? "less" : "more"}`;
    bar.style.setProperty("--share", String(Math.abs(part.share) / largest));
    bar.classList.toggle("network", !!part.network);
    value.className = "value";
    value.textContent = `${part.share > 0 ? "+" : ""}${number(part.share, 3)}`;
    line.append(name, bar, value);
    return line;
  }

  function show(/** @type {number} */ choice) {
    panel.hidden = !(choice >= 0 && choice < count);
    if (panel.hidden) return;
    const against = Number(other.value) === choice ? -1 : Number(other.value),
      parts = sharesOf(map, choice, against),
      shown = summed(parts),
      largest = Math.max(...shown.map(({ share }) => Math.abs(share)), 1e-9);
    word.value = String(choice);
    other.value = String(against);
    list.replaceChildren(...shown.map((part) => row(part, largest)));
    const sum = number(total(parts.map(({ share }) => share)), 4);
    element(panel, ".why-sum").textContent =
      against < 0
        ? `The shares add up to the logit of “${isolated(names[choice])}”: ${sum}.`
        : `The shares add up to the lead of “${isolated(names[choice])}” over “${isolated(names[against])}”: ${sum}.`;
    panel.dataset.sum = String(total(parts.map(({ share }) => share)));
  }

  listen(word, "change", () => choose(Number(word.value)));
  listen(other, "change", () => show(Number(word.value)));
  listen(element(panel, ".why-end"), "click", () => choose(-1));
  return { show };
}
