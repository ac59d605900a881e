// Concatenates and runs the scripts that all drawings share. Replaces the browser APIs they
// need by xmldom's parser and serializer, and by elements (including canvases) without pixels.

import { readdirSync, readFileSync } from "node:fs";
import { DOMImplementation, DOMParser, XMLSerializer } from "@xmldom/xmldom";

const FOLDER = new URL("../../ui/canvas/shared/", import.meta.url);
export const LETTER = 6; // the width of every letter, in pixels

class Context2d {
  font = "10px sans-serif";
  textBaseline = "alphabetic";
  #fillStyle = "#000000";
  get fillStyle() {
    return this.#fillStyle;
  }
  set fillStyle(style) {
    // like a browser, ignore invalid colors
    if (/^(#[0-9a-f]{6}|rgba\(.*\))$/.test(style)) this.#fillStyle = style;
  }
  measureText(text) {
    const ascent = { alphabetic: 9, middle: 5, top: 0 }[this.textBaseline];
    return { width: LETTER * [...text].length, fontBoundingBoxAscent: ascent };
  }
}

class Element {
  children = [];
  textContent = "";
  constructor(name) {
    this.name = name;
  }
  append(...children) {
    this.children.push(...children);
  }
  getContext() {
    return new Context2d();
  }
}

const document = {
  implementation: new DOMImplementation(),
  createElement: (name) => new Element(name),
};

/** Returns the values of these names in the shared scripts. */
export function shared(...names) {
  const texts = readdirSync(FOLDER)
    .filter((name) => name.endsWith(".js"))
    .sort()
    .map((name) => readFileSync(new URL(name, FOLDER), "utf8"));
  const body = `"use strict";\n${texts.join("")}\nreturn { ${names.join(", ")} };`;
  return new Function("document", "XMLSerializer", body)(document, XMLSerializer);
}

/** Returns the values of these names in one or more scripts of a drawing. */
export function script(paths, ...names) {
  const texts = [paths]
    .flat()
    .map((path) => readFileSync(new URL(`../../ui/canvas/${path}`, import.meta.url), "utf8"));
  return new Function(`"use strict";\n${texts.join("")}\nreturn { ${names.join(", ")} };`)();
}

/** Returns the elements with this name in an SVG text, which must be well-formed. */
export function elements(text, name) {
  const onError = (level, message) => {
    // it warns about the replacement character, which is intended
    if (level !== "warning") throw new Error(`${level}: ${message}`);
  };
  const parsed = new DOMParser({ onError }).parseFromString(text, "image/svg+xml");
  return [...parsed.getElementsByTagName(name)];
}
