// @ts-check
// Each picture has a single function, draw(context, ratio). With an SvgContext instead of a canvas
// context, the same function records the picture as an SVG document.

const SVG = "http://www.w3.org/2000/svg";

// Replace control characters and lone surrogates, which XML doesn't allow even when escaped.
/** @param {string} text */
function xmlText(text) {
  return String(text)
    .replace(/[\t\n\r\f]/g, " ") // as fillText does
    .replace(/[\0-\x1f\x7f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd");
}

const short = (/** @type {number} */ number) => String(Math.round(number * 1000) / 1000);

/** @typedef {[number, number, number, number, number, number]} Matrix */
/** @typedef {Pick<SvgContext, "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "lineCap"
 *   | "lineJoin" | "font" | "textAlign" | "textBaseline" | "imageSmoothingEnabled">} Look */
/** @typedef {Look & { lineDash: number[], matrix: Matrix, group: Element | null }} SvgState */

// The part of CanvasRenderingContext2D that the components use, implemented with SVG elements. As on a
// canvas, path points are transformed when they're added. Stroke widths are scaled by the mean of both
// directions.
class SvgContext {
  #document = document.implementation.createDocument(SVG, "svg", null);
  #probe = pen(document.createElement("canvas")); // measures text and parses colors
  /** @type {Map<string, [colour: string, opacity: string]>} */
  #paints = new Map();
  /** @type {Map<string, number>} */
  #baselines = new Map();
  /** @type {SvgState[]} */
  #stack = [];
  #path = "";
  #clips = 0;
  /** @type {SvgState} */
  #state = {
    fillStyle: "#000000",
    strokeStyle: "#000000",
    lineWidth: 1,
    globalAlpha: 1,
    lineCap: "butt",
    lineJoin: "miter",
    lineDash: [],
    font: "10px sans-serif",
    textAlign: "start",
    textBaseline: "alphabetic",
    imageSmoothingEnabled: true,
    matrix: [1, 0, 0, 1, 0, 0],
    group: null,
  };

  /**
   * @param {number} width
   * @param {number} height
   * @param {string} background
   */
  constructor(width, height, background) {
    this.size = [width, height];
    this.background = background;
    const root = this.#document.documentElement;
    root.setAttribute("width", short(width));
    root.setAttribute("height", short(height));
    root.setAttribute("viewBox", `0 0 ${short(width)} ${short(height)}`);
    this.#defs = this.#element("defs", {}, root);
    this.#element(
      "rect",
      { width: "100%", height: "100%", ...this.#paint("fill", background) },
      root,
    );
    this.#root = this.#element("g", {}, root);
    this.#state.group = this.#root;
  }
  #defs;
  #root;

  static {
    const kept = [
      "fillStyle",
      "strokeStyle",
      "lineWidth",
      "globalAlpha",
      "lineCap",
      "lineJoin",
      "font",
      "textAlign",
      "textBaseline",
      "imageSmoothingEnabled",
    ];
    for (const name of kept) {
      Object.defineProperty(SvgContext.prototype, name, {
        get() {
          return this.#state[name];
        },
        set(value) {
          this.#state[name] = value;
        },
      });
    }
  }

  // The document as text.
  text() {
    return new XMLSerializer().serializeToString(this.#document);
  }

  /**
   * @param {string} name
   * @param {Record<string, string | undefined>} attributes undefined ones are skipped
   * @param {Element} [parent]
   */
  #element(name, attributes, parent) {
    const element = this.#document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined) element.setAttribute(key, value);
    }
    (parent ?? this.#state.group ?? this.#root).appendChild(element);
    return element;
  }

  // Convert any canvas color to #rrggbb and an opacity, which every SVG viewer supports.
  /**
   * @param {string} kind
   * @param {string} style
   */
  #paint(kind, style) {
    let paint = this.#paints.get(style);
    if (!paint) {
      this.#probe.fillStyle = "#000000";
      this.#probe.fillStyle = style;
      const parts = /^rgba\((\d+), (\d+), (\d+), ([\d.e-]+)\)$/.exec(String(this.#probe.fillStyle));
      const hex = (/** @type {string} */ text) => Number(text).toString(16).padStart(2, "0");
      paint = parts
        ? [`#${parts.slice(1, 4).map(hex).join("")}`, parts[4]]
        : [String(this.#probe.fillStyle), "1"];
      this.#paints.set(style, paint);
    }
    const [colour, opacity] = paint;
    return { [kind]: colour, ...(opacity === "1" ? {} : { [`${kind}-opacity`]: opacity }) };
  }

  #opacity() {
    return this.#state.globalAlpha === 1 ? {} : { opacity: short(this.#state.globalAlpha) };
  }

  #transform() {
    const matrix = this.#state.matrix;
    const same = matrix.every((value, i) => value === (i === 0 || i === 3 ? 1 : 0));
    return same
      ? {}
      : { transform: `matrix(${matrix.map((v) => String(+v.toFixed(6))).join(" ")})` };
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #point(x, y) {
    const [a, b, c, d, e, f] = this.#state.matrix;
    return `${short(a * x + c * y + e)} ${short(b * x + d * y + f)}`;
  }

  #strokeLook() {
    const [a, b, c, d] = this.#state.matrix;
    const scale = Math.sqrt(Math.abs(a * d - b * c));
    const { lineWidth, lineCap, lineJoin, lineDash, strokeStyle } = this.#state;
    return {
      fill: "none",
      ...this.#paint("stroke", strokeStyle),
      "stroke-width": short(lineWidth * scale),
      ...(lineCap === "butt" ? {} : { "stroke-linecap": lineCap }),
      ...(lineJoin === "miter" ? { "stroke-miterlimit": "10" } : { "stroke-linejoin": lineJoin }),
      ...(lineDash.length
        ? { "stroke-dasharray": lineDash.map((v) => short(v * scale)).join(" ") }
        : {}),
      ...this.#opacity(),
    };
  }

  save() {
    this.#stack.push({ ...this.#state });
  }
  restore() {
    this.#state = this.#stack.pop() ?? this.#state;
  }
  /**
   * @param {number} a
   * @param {number} b
   * @param {number} c
   * @param {number} d
   * @param {number} e
   * @param {number} f
   */
  transform(a, b, c, d, e, f) {
    const [A, B, C, D, E, F] = this.#state.matrix;
    this.#state.matrix = [
      A * a + C * b,
      B * a + D * b,
      A * c + C * d,
      B * c + D * d,
      A * e + C * f + E,
      B * e + D * f + F,
    ];
  }
  /**
   * @param {number} a
   * @param {number} b
   * @param {number} c
   * @param {number} d
   * @param {number} e
   * @param {number} f
   */
  setTransform(a, b, c, d, e, f) {
    this.#state.matrix = [a, b, c, d, e, f];
  }
  resetTransform() {
    this.setTransform(1, 0, 0, 1, 0, 0);
  }
  /**
   * @param {number} x
   * @param {number} y
   */
  translate(x, y) {
    this.transform(1, 0, 0, 1, x, y);
  }
  /**
   * @param {number} x
   * @param {number} y
   */
  scale(x, y) {
    this.transform(x, 0, 0, y, 0, 0);
  }
  /** @param {number} angle */
  rotate(angle) {
    this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0);
  }
  /** @param {number[]} lengths */
  setLineDash(lengths) {
    this.#state.lineDash = [...lengths];
  }

  beginPath() {
    this.#path = "";
  }
  closePath() {
    if (this.#path) this.#path += "Z";
  }
  /**
   * @param {number} x
   * @param {number} y
   */
  moveTo(x, y) {
    this.#path += `M${this.#point(x, y)}`;
  }
  /**
   * @param {number} x
   * @param {number} y
   */
  lineTo(x, y) {
    this.#path += `${this.#path ? "L" : "M"}${this.#point(x, y)}`;
  }
  /**
   * @param {number} x1
   * @param {number} y1
   * @param {number} x2
   * @param {number} y2
   * @param {number} x
   * @param {number} y
   */
  bezierCurveTo(x1, y1, x2, y2, x, y) {
    if (!this.#path) this.moveTo(x1, y1);
    this.#path += `C${this.#point(x1, y1)} ${this.#point(x2, y2)} ${this.#point(x, y)}`;
  }
  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  rect(x, y, width, height) {
    this.moveTo(x, y);
    this.lineTo(x + width, y);
    this.lineTo(x + width, y + height);
    this.lineTo(x, y + height);
    this.closePath();
  }
  // Arcs become curves of at most 90°, so that they're correct under every transformation.
  /**
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {number} start
   * @param {number} end
   */
  arc(x, y, radius, start, end, anticlockwise = false) {
    const full = 2 * Math.PI;
    let turn = anticlockwise ? start - end : end - start;
    turn = turn >= full ? full : ((turn % full) + full) % full;
    const pieces = Math.max(Math.ceil(turn / (Math.PI / 2)), 1);
    const step = (anticlockwise ? -turn : turn) / pieces;
    const reach = (4 / 3) * Math.tan(step / 4) * radius;
    this.lineTo(x + radius * Math.cos(start), y + radius * Math.sin(start));
    for (let i = 0; i < pieces; i++) {
      const from = start + i * step,
        to = from + step;
      const [cosFrom, sinFrom, cosTo, sinTo] = [
        Math.cos(from),
        Math.sin(from),
        Math.cos(to),
        Math.sin(to),
      ];
      this.bezierCurveTo(
        x + radius * cosFrom - reach * sinFrom,
        y + radius * sinFrom + reach * cosFrom,
        x + radius * cosTo + reach * sinTo,
        y + radius * sinTo - reach * cosTo,
        x + radius * cosTo,
        y + radius * sinTo,
      );
    }
  }
  stroke() {
    if (this.#path) this.#element("path", { d: this.#path, ...this.#strokeLook() });
  }
  fill() {
    if (!this.#path) return;
    const look = { ...this.#paint("fill", this.#state.fillStyle), ...this.#opacity() };
    this.#element("path", { d: this.#path, ...look });
  }
  // Everything drawn until `restore` goes into a group that is clipped to the path.
  clip() {
    const id = `clip${this.#clips++}`;
    const shape = this.#element("clipPath", { id }, this.#defs);
    this.#element("path", { d: this.#path || "M0 0" }, shape);
    this.#state.group = this.#element("g", { "clip-path": `url(#${id})` });
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  #box(x, y, width, height) {
    if (width < 0) [x, width] = [x + width, -width];
    if (height < 0) [y, height] = [y + height, -height];
    return { x: short(x), y: short(y), width: short(width), height: short(height) };
  }
  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  fillRect(x, y, width, height) {
    if (!width || !height) return;
    const look = { ...this.#paint("fill", this.#state.fillStyle), ...this.#opacity() };
    this.#element("rect", { ...this.#box(x, y, width, height), ...look, ...this.#transform() });
  }
  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  strokeRect(x, y, width, height) {
    const path = this.#path; // strokeRect mustn't change the current path
    this.beginPath();
    this.rect(x, y, width, height);
    this.stroke();
    this.#path = path;
  }
  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  clearRect(x, y, width, height) {
    const [a, b, c, d, e, f] = this.#state.matrix;
    const corners = [
      [x, y],
      [x + width, y + height],
    ].map(([u, v]) => [a * u + c * v + e, b * u + d * v + f]);
    const [left, right] = corners.map((corner) => corner[0]).sort((p, q) => p - q);
    const [top, bottom] = corners.map((corner) => corner[1]).sort((p, q) => p - q);
    const whole =
      !b && !c && left <= 0 && top <= 0 && right >= this.size[0] && bottom >= this.size[1];
    if (whole && this.#state.group === this.#root) return this.#root.replaceChildren();
    const look = this.#paint("fill", this.background);
    this.#element("rect", { ...this.#box(x, y, width, height), ...look, ...this.#transform() });
  }

  /** @param {string} text */
  measureText(text) {
    this.#probe.font = this.#state.font;
    return this.#probe.measureText(text);
  }
  // The distance from the drawing point to the alphabetic baseline for the current textBaseline.
  #baseline() {
    const { font, textBaseline } = this.#state;
    const key = `${textBaseline} ${font}`;
    let baseline = this.#baselines.get(key);
    if (baseline === undefined) {
      this.#probe.textBaseline = "alphabetic";
      const ascent = this.measureText("x").fontBoundingBoxAscent;
      this.#probe.textBaseline = textBaseline;
      baseline = ascent - this.measureText("x").fontBoundingBoxAscent;
      this.#baselines.set(key, baseline);
      this.#probe.textBaseline = "alphabetic";
    }
    return baseline;
  }
  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   */
  fillText(text, x, y) {
    this.#probe.font = this.#state.font; // normalized by the canvas: "italic bold 12px sans-serif"
    const [, kind, size, family] = /^(.*?)([\d.]+)px (.*)$/.exec(this.#probe.font) ?? [
      "",
      "",
      "10",
      "sans-serif",
    ];
    // textLength keeps the width if the viewer substitutes a different font
    const width = this.measureText(text).width;
    const weight = /\b(bold|[1-9]00)\b/.exec(kind);
    const anchor = { center: "middle", right: "end", end: "end", left: "", start: "" }[
      this.#state.textAlign
    ];
    const element = this.#element("text", {
      x: short(x),
      y: short(y + this.#baseline()),
      "font-family": family,
      "font-size": size,
      ...(width > 0 ? { textLength: short(width), lengthAdjust: "spacingAndGlyphs" } : {}),
      ...(weight ? { "font-weight": weight[1] } : {}),
      ...(/italic|oblique/.test(kind) ? { "font-style": "italic" } : {}),
      ...(anchor ? { "text-anchor": anchor } : {}),
      ...this.#paint("fill", this.#state.fillStyle),
      ...this.#opacity(),
      ...this.#transform(),
    });
    element.setAttributeNS("http://www.w3.org/XML/1998/namespace", "xml:space", "preserve");
    element.textContent = xmlText(text);
  }

  // drawImage(canvas, x, y), optionally with width and height, or with a source rectangle first.
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number[]} numbers
   */
  drawImage(canvas, ...numbers) {
    let part = [0, 0, canvas.width, canvas.height],
      place = numbers;
    if (numbers.length === 8) [part, place] = [numbers.slice(0, 4), numbers.slice(4)];
    const [x, y, width = part[2], height = part[3]] = place;
    if (!part[2] || !part[3] || !width || !height) return;
    const copy = document.createElement("canvas");
    copy.width = Math.max(Math.round(part[2]), 1);
    copy.height = Math.max(Math.round(part[3]), 1);
    const [left, top, across, down] = part;
    pen(copy).drawImage(canvas, left, top, across, down, 0, 0, copy.width, copy.height);
    this.#element("image", {
      ...this.#box(x, y, width, height),
      href: copy.toDataURL("image/png"),
      preserveAspectRatio: "none",
      ...this.#opacity(),
      ...this.#transform(),
      ...(this.#state.imageSmoothingEnabled ? {} : { "image-rendering": "pixelated" }),
    });
  }
}
