// @ts-check
// Files that a figure is downloaded as: its picture as PNG or SVG, its numbers as CSV.

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
  // no leading dot (a hidden file), and no lone dash left at an end
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
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser may still be reading
}

// Twice the resolution of the page, less where a browser could not hold so large a picture.
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
  // a canvas is transparent where nothing was drawn, and light text would be lost on white
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = 1;
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = themeBackground(element);
  context.fillRect(0, 0, canvas.width, canvas.height);
  /** @type {Blob | null} */
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error(`the browser cannot save ${canvas.width} x ${canvas.height} pixels`);
  return blob;
}

/** @type {(picture: Framed) => Blob} */
function svgOf({ width, height, draw, element }) {
  const context = new SvgContext(width, height, themeBackground(element));
  draw(context, 1);
  return new Blob([context.text()], { type: "image/svg+xml" });
}

/** @type {(value: number) => string} with as few digits as tell a float32 from all others */
function float32Text(value) {
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].find(
    (digits) => Math.fround(Number(value.toPrecision(digits))) === value,
  );
  return String(digits ? Number(value.toPrecision(digits)) : value);
}

/**
 * Rows of texts and numbers as CSV. A text that a spreadsheet would take for a formula gets an
 * apostrophe before it.
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
