// @ts-check
// Helpers to find a canvas's elements and to handle their events.

/**
 * The element for a selector. It must be in the canvas's HTML file.
 * @type {(root: ParentNode, selector: string) => HTMLElement}
 */
function element(root, selector) {
  const there = root.querySelector(selector);
  if (!(there instanceof HTMLElement)) throw new Error(`there's no ${selector} in this figure`);
  return there;
}

/** @type {(root: ParentNode, selector: string) => HTMLCanvasElement} */
function canvasElement(root, selector) {
  const there = element(root, selector);
  if (!(there instanceof HTMLCanvasElement)) throw new Error(`${selector} isn't a canvas`);
  return there;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @returns {CanvasRenderingContext2D}
 */
function pen(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser doesn't support 2D canvases");
  return context;
}

/**
 * Resize and clear a canvas, and scale its context to CSS pixels.
 * @type {(canvas: HTMLCanvasElement, size: { width: number, height: number }) =>
 *   { context: CanvasRenderingContext2D, ratio: number }} ratio: device pixels per CSS pixel
 */
function sizeCanvas(canvas, { width, height }) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = pen(canvas);
  context.scale(ratio, ratio);
  return { context, ratio };
}

/**
 * Signal that the canvas will have its final height after the current task, so that the elements below
 * it can be shown (ui/frame/layout_shift.js).
 * @type {(root: HTMLElement | ShadowRoot) => void}
 */
function markHeightFinal(root) {
  if (root instanceof ShadowRoot) root.host.toggleAttribute("data-drawn", true);
}

/** @typedef {(target: EventTarget, name: string, handler: (event: any) => unknown) => void} Listen */

/**
 * `listen` adds a handler, and `forget` removes all of them when the canvas leaves the page. A key press
 * that a handler consumes (`preventDefault`) doesn't reach the page, where arrow keys change the step.
 * @returns {{ listen: Listen, forget: () => void }}
 */
function hearing() {
  const ears = new AbortController();
  return {
    listen: (target, name, handler) =>
      target.addEventListener(
        name,
        (event) => {
          handler(event);
          if (name === "keydown" && event.defaultPrevented) event.stopPropagation();
        },
        { signal: ears.signal },
      ),
    forget: () => ears.abort(),
  };
}

/** @type {WeakMap<object, () => void>} the cleanup function of each element's current canvas */
const ENDS = new WeakMap();

/**
 * Clean up the previous canvas of this element. Streamlit calls a component's function again for new
 * data, but its cleanup function only when it leaves the page. Without this, all earlier canvases would
 * keep their listeners and their data.
 * @type {(root: HTMLElement | ShadowRoot, end: () => void) => () => void}
 */
function replaceLast(root, end) {
  ENDS.get(root)?.();
  ENDS.set(root, end);
  return end;
}

/**
 * Call `draw` whenever the element's width changes. Drawing changes the height, so that is ignored.
 * @type {(element: HTMLElement, draw: () => void) => () => void}
 */
function onResize(element, draw) {
  let drawn = element.clientWidth;
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === drawn) return;
    drawn = element.clientWidth;
    draw();
  });
  observer.observe(element);
  return () => observer.disconnect();
}
