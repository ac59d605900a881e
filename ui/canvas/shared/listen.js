// @ts-check
// How a drawing finds its elements and hears what happens to them.

/**
 * The element for a selector. A drawing's own html holds every one that its script asks for.
 * @type {(root: ParentNode, selector: string) => HTMLElement}
 */
function element(root, selector) {
  const there = root.querySelector(selector);
  if (!(there instanceof HTMLElement)) throw new Error(`no ${selector} in this drawing`);
  return there;
}

/** @type {(root: ParentNode, selector: string) => HTMLCanvasElement} */
function canvasElement(root, selector) {
  const there = element(root, selector);
  if (!(there instanceof HTMLCanvasElement)) throw new Error(`${selector} is no canvas`);
  return there;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @returns {CanvasRenderingContext2D}
 */
function pen(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser has no canvas to draw on");
  return context;
}

/**
 * Give a canvas its size on the page, empty; its context then takes lengths in CSS pixels.
 * @type {(canvas: HTMLCanvasElement, size: { width: number, height: number }) =>
 *   { context: CanvasRenderingContext2D, ratio: number }} ratio: the screen's pixels to one of CSS
 */
function layOut(canvas, { width, height }) {
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
 * Say that a drawing has its height once the running task has ended: what stands below it may then be
 * shown, see ui/frame/top_down.js.
 * @type {(root: HTMLElement | ShadowRoot) => void}
 */
function hasItsHeight(root) {
  if (root instanceof ShadowRoot) root.host.toggleAttribute("data-drawn", true);
}

/** @typedef {(target: EventTarget, name: string, handler: (event: any) => unknown) => void} Listen */

/**
 * `listen` adds a handler; `forget` removes all of them, when the drawing leaves the page. A key that
 * a handler takes for itself (`preventDefault`) does nothing else on the page: arrows take steps there.
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

/** @type {WeakMap<object, () => void>} how the drawing that an element holds is ended */
const ENDS = new WeakMap();

/**
 * End the drawing that was at this element before. Streamlit calls a drawing's function again for new
 * data, but its end only when it leaves the page: without this all earlier ones would go on listening,
 * and keep their data.
 * @type {(root: HTMLElement | ShadowRoot, end: () => void) => () => void}
 */
function inPlaceOfTheLast(root, end) {
  ENDS.get(root)?.();
  ENDS.set(root, end);
  return end;
}

/**
 * Call `draw` whenever the element has a new width: drawing itself changes the height.
 * @type {(element: HTMLElement, draw: () => void) => () => void}
 */
function onNewWidth(element, draw) {
  let drawn = element.clientWidth;
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === drawn) return;
    drawn = element.clientWidth;
    draw();
  });
  observer.observe(element);
  return () => observer.disconnect();
}
