// @ts-check
// Plays the site's part in a file that holds a whole walk: draws the picture, and hands it the layer
// and the head that it asks for. The picture's script, which `exported` is, stands before this text.

/**
 * A layer as offline.py packs it: numbers of the layer, of its heads ("head 3 q") and of the keys and
 * values that some of them share ("shared 1 k").
 * @typedef {{
 *   says: string, picture: string, layer: number, numbers: Record<string, Numbers>,
 *   heads: Record<string, { shared: number, scale: number, captions: Caption[] }>,
 * }} HeldLayer
 */

const walked = element(document, "#walk");
/** @type {Map<number, Promise<HeldLayer>>} layers that were unpacked before */
const unpacked = new Map();
let lastAsked = ""; // layers are unpacked one after another: only what was asked for last is shown

/** @type {(id: string) => Uint8Array<ArrayBuffer>} */
function held(id) {
  const text = element(document, `#${id}`).textContent ?? "";
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** @type {(layer: number) => Promise<HeldLayer>} */
function layerOf(layer) {
  const found = unpacked.get(layer) ?? inflate(held(`layer-${layer}`)).then(unpackNumbers);
  unpacked.set(layer, found);
  return found;
}

/**
 * What the picture is given of a head. Of one that the file does not hold it is what every head of
 * the layer has, and a text that says so.
 * @type {(layer: HeldLayer, head: number) => Opened}
 */
function openHeadIn(layer, head) {
  const { says, picture, heads } = layer,
    own = heads[head];
  /** @type {Record<string, Numbers>} */
  const numbers = {};
  for (const [name, values] of Object.entries(layer.numbers)) {
    const [, whose, number, tensor] = name.match(/^(head|shared) (\d+) (.*)$/) ?? [];
    if (!whose) numbers[name] = values;
    else if (own && Number(number) === (whose === "head" ? head : own.shared))
      numbers[tensor] = values;
  }
  const place = { picture, layer: layer.layer, head, numbers };
  if (own) return { ...place, says, scale: own.scale, captions: own.captions };
  const there = Object.keys(heads).map((number) => `L${layer.layer}H${number}`);
  const missing = `This file does not hold this head. Of layer ${layer.layer} it holds ${there.join(", ")}.`;
  const { captions } = Object.values(heads)[0]; // the story leads to a head that is there
  return { ...place, says: missing, scale: 0, captions, missing };
}

/** @type {(layer: number, head: number) => Promise<void>} */
async function sendOpened(layer, head) {
  const asked = `${layer} ${head}`;
  lastAsked = asked;
  const opened = openHeadIn(await layerOf(layer), head);
  if (asked !== lastAsked) return;
  window.attentionLabOpened ??= new Map();
  window.attentionLabOpened.set(opened.picture, opened);
  window.dispatchEvent(new CustomEvent("attention-lab-opened", { detail: opened.picture }));
}

/**
 * The picture tells where the visitor is: level, matrix, layer, head, ...
 * @type {(name: string, value: unknown) => void}
 */
function answer(name, value) {
  const [, , layer, head] = String(value).split(" ").map(Number);
  const now = window.attentionLabOpened?.get("walk");
  const open = now?.layer === layer && now.head === head;
  if (name === "place" && !open) sendOpened(layer, head);
}

function mountPicture() {
  const root = walked.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(`${PICTURE_CSS} .learn { display: none; }`); // lessons are not in a file
  root.adoptedStyleSheets = [style];
  root.innerHTML = PICTURE_HTML; // the site's own file, without a value in it
  exported({
    data: held("whole"),
    parentElement: root,
    setStateValue: answer,
    setTriggerValue: answer,
  });
  sendOpened(Number(walked.dataset.layer), Number(walked.dataset.head));
}

mountPicture();
