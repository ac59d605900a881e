// @ts-check
// The whole document larger or smaller: pictures, texts, menus. Only then do places of the pointer and
// boxes of elements count other pixels than the style sheets, and all that draws would be wrong by it.
const documentZoom = {
  factor: 1,
  corrects: false,
  /** @param {number} factor */
  set(factor) {
    if (!documentZoom.corrects) documentZoom.correct();
    documentZoom.factor = factor;
    document.documentElement.style.zoom = factor === 1 ? "" : String(factor);
    dispatchEvent(new Event("resize"));
  },
  /** From now on, what the browser says of places and boxes counts the style sheets' pixels. */
  correct() {
    documentZoom.corrects = true;
    const zoom = documentZoom;
    /**
     * What a property of the browser says, times a factor.
     * @param {object} owner @param {string[]} names @param {() => number} by
     */
    const scale = (owner, names, by) => {
      for (const name of names) {
        const said = Object.getOwnPropertyDescriptor(owner, name);
        if (!said?.get) continue;
        const get = said.get;
        Object.defineProperty(owner, name, {
          ...said,
          get() {
            return get.call(this) * by();
          },
        });
      }
    };
    const smaller = () => 1 / zoom.factor;
    scale(MouseEvent.prototype, ["clientX", "clientY", "pageX", "pageY", "x", "y"], smaller);
    if ("Touch" in window)
      scale(Touch.prototype, ["clientX", "clientY", "pageX", "pageY"], smaller);
    scale(VisualViewport.prototype, ["width", "height", "offsetLeft", "offsetTop"], smaller);
    scale(window, ["innerWidth", "innerHeight"], smaller);
    scale(window, ["devicePixelRatio"], () => zoom.factor); // a canvas has as many points as are seen

    const root = document.documentElement;
    const { getBoundingClientRect } = Element.prototype;
    /** Some browsers count boxes in the pixels of the style sheets already: the root's own tells. */
    const ofBoxes = () => getBoundingClientRect.call(root).width / root.offsetWidth || 1;
    const corrected = (/** @type {DOMRect} */ { x, y, width, height }) => {
      const by = zoom.factor === 1 ? 1 : ofBoxes();
      return new DOMRect(x / by, y / by, width / by, height / by);
    };
    for (const prototype of [Element.prototype, Range.prototype]) {
      const box = prototype.getBoundingClientRect,
        boxes = prototype.getClientRects;
      prototype.getBoundingClientRect = function () {
        return corrected(box.call(this));
      };
      prototype.getClientRects = function () {
        const all = [...boxes.call(this)].map(corrected);
        return Object.assign(all, { item: (/** @type {number} */ index) => all[index] ?? null });
      };
    }
  },
};
