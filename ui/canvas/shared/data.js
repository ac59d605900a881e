// @ts-check
// Decodes the data that Python packs: a length (4 bytes, little endian), a JSON header, and a body.

/**
 * The header's fields, and the body's bytes as `body`. The bytes are copied, so that numbers in them are
 * aligned to four bytes.
 * @type {(data: Uint8Array) => any}
 */
function unpack(data) {
  const bytes = data.slice();
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { ...header, body: bytes.subarray(4 + length) };
}

/**
 * The same with the body as float32 `values`.
 * @type {(data: Uint8Array) => any}
 */
function unpackFloats(data) {
  const { body, ...header } = unpack(data);
  return { ...header, values: new Float32Array(body.buffer, body.byteOffset) };
}

/** @param {Uint8Array<ArrayBuffer>} deflated */
async function inflate(deflated) {
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// All canvases format numbers the same way: with a real minus sign, and as decimals unless that would
// need many zeros.
const MAX_ZEROS = 1e-5,
  MOST_DIGITS = 1e7;

/** @type {(text: string) => string} */
const minus = (text) => text.replace(/-/g, "−");

/** @type {(text: string) => string} "7.6e-6" as "7.6 × 10⁻⁶" */
function formatPower(text) {
  const [digits, power] = text.split("e"),
    raised = [...power.replace("+", "")].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)] ?? "⁻");
  return minus(`${digits} × 10${raised.join("")}`);
}

/** @type {(value: number, digits: number) => string} with at most `digits` significant digits */
function number(value, digits) {
  if (Number.isNaN(value)) return "nan";
  const size = Math.abs(value);
  if (size === Infinity) return value > 0 ? "∞" : "−∞";
  const rounded = Number(value.toPrecision(digits));
  if (size === 0) return "0";
  if (size < MAX_ZEROS || size >= MOST_DIGITS) return formatPower(rounded.toExponential());
  const places = digits - 1 - Math.floor(Math.log10(Math.abs(rounded)));
  return minus(String(Number(rounded.toFixed(Math.min(Math.max(places, 0), 100)))));
}

const MIN_SHARE = 1e-5,
  MOST_SHARE = 0.995;

/**
 * A weight or probability with two significant digits, like `percent` in ui/text/formatting.py: "64%",
 * "0.36%". Nonzero values never look like 0%, and values below 1 never look like 100%.
 * @type {(value: number) => string}
 */
function percent(value) {
  if (value > 0 && value < MIN_SHARE) return "less than 0.001%";
  if (value >= MOST_SHARE) return value < 1 ? "more than 99%" : `${Math.round(100 * value)}%`;
  return `${number(100 * value, 2)}%`;
}

/** @typedef {Pick<CanvasRenderingContext2D, "measureText">} Measure */

/**
 * Shorten a label to a width. The number that distinguishes repeated tokens stays: "animal₂" becomes
 * "ani…₂".
 * @type {(context: Measure, text: string, room: number) => string}
 */
function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const which = text.match(/[₀-₉]+$/)?.[0] ?? "";
  const kept = [...text.slice(0, text.length - which.length)];
  const cut = () => `${kept.join("")}…${which}`;
  while (kept.length > 1 && context.measureText(cut()).width > room) kept.pop();
  return cut();
}

/**
 * Break a text into lines of at most `room` pixels, between words. An empty text has no lines.
 * @type {(context: Measure, text: string, room: number) => string[]}
 */
function wrap(context, text, room) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(" ").filter(Boolean)) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && context.measureText(longer).width <= room) lines[lines.length - 1] = longer;
    else lines.push(shorten(context, word, room));
  }
  return lines;
}

/**
 * Wrap a text in isolate marks, so that right-to-left text doesn't reorder the sentence around it.
 * @type {(text: string) => string}
 */
const isolated = (text) => `\u2068${text}\u2069`;

/**
 * The header's fields, named float32 arrays as `numbers` (the header's `arrays` lists their names and
 * shapes in order), and the remaining bytes as `body`.
 * @type {(data: Uint8Array) => any}
 */
function unpackNumbers(data) {
  const { body, arrays, ...header } = unpack(data);
  /** @type {Record<string, { shape: number[], values: Float32Array }>} */
  const numbers = {};
  let start = 0;
  for (const [name, shape] of /** @type {[string, number[]][]} */ (arrays)) {
    const end = start + 4 * shape.reduce((product, size) => product * size, 1);
    numbers[name] = { shape, values: new Float32Array(body.slice(start, end).buffer) };
    start = end;
  }
  return { ...header, numbers, body: body.slice(start) };
}
