// @ts-check
// Downloads of a figure: its picture as PNG or SVG, and its numbers as CSV.

const MAX_FILE_NAME = 80;

/**
 * @param {string} name
 * @param {string} ending
 */
function fileName(name, ending) {
  const plain = String(name)
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/-{2,}/g, "-");
  // no leading dot (a hidden file), and no dashes at either end
  const kept = [...plain]
    .slice(0, MAX_FILE_NAME)
    .join("")
    .replace(/^[-.]+|[-.]+$/g, "");
  return `${kept || "picture"}.${ending}`;
}

/** @param {Element} element */
function themeBackground(element) {
  const named = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  return named || "white";
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.hidden = true;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser may still be reading the file
}

// Twice the page's resolution, or less if the picture would be too large for the browser
const SHARP = 2,
  MOST_PIXELS = 64e6,
  LONGEST_SIDE = 16_000;

/** @type {(picture: Framed) => Promise<Blob>} */
async function pngOf({ width, height, draw, element }) {
  const room = Math.min(
    Math.sqrt(MOST_PIXELS / (width * height)),
    LONGEST_SIDE / Math.max(width, height),
  );
  const ratio = Math.min(SHARP, room);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = pen(canvas);
  context.scale(ratio, ratio);
  draw(context, ratio);
  // fill the transparent background, or light text would be invisible on white
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = 1;
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = themeBackground(element);
  context.fillRect(0, 0, canvas.width, canvas.height);
  /** @type {Blob | null} */
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error(`the browser can't save ${canvas.width} × ${canvas.height} pixels`);
  return blob;
}

/** @type {(picture: Framed) => Blob} */
function svgOf({ width, height, draw, element }) {
  const context = new SvgContext(width, height, themeBackground(element));
  draw(context, 1);
  return new Blob([context.text()], { type: "image/svg+xml" });
}

/** @type {(value: number) => string} the shortest decimal that identifies a float32 */
function float32Text(value) {
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].find(
    (digits) => Math.fround(Number(value.toPrecision(digits))) === value,
  );
  return String(digits ? Number(value.toPrecision(digits)) : value);
}

/**
 * Rows of texts and numbers as CSV. Texts that a spreadsheet would treat as formulas start with an
 * apostrophe.
 * @type {(rows: (string | number)[][]) => string}
 */
function csvOf(rows) {
  const field = (/** @type {string | number} */ value) => {
    if (typeof value === "number") return float32Text(value);
    const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(plain) ? `"${plain.replace(/"/g, '""')}"` : plain;
  };
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}
