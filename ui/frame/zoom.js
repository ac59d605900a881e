// @ts-check
// The whole document larger or smaller: pictures, texts, menus. Only then do places of the pointer and
// boxes of elements count other pixels than the style sheets, and all that draws would be wrong by it.
const documentZoom = {
  factor: 1,
  /** @param {number} factor */
  set(factor) {
    documentZoom.factor = factor;
    document.documentElement.style.zoom = factor === 1 ? "" : String(factor);
    dispatchEvent(new Event("resize"));
  },
};
{
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
  if ("Touch" in window) scale(Touch.prototype, ["clientX", "clientY", "pageX", "pageY"], smaller);
  scale(VisualViewport.prototype, ["width", "height", "offsetLeft", "offsetTop"], smaller);
  scale(window, ["innerWidth", "innerHeight"], smaller);
  scale(window, ["devicePixelRatio"], () => zoom.factor); // a canvas has as many points as are seen

  const root = document.documentElement;
  const { getBoundingClientRect } = Element.prototype;
  /** Some browsers count boxes in the pixels of the style sheets already: the root's own tells. */
  const ofBoxes = () => getBoundingClientRect.call(root).width / root.offsetWidth || 1;
  for (const prototype of [Element.prototype, Range.prototype]) {
    const box = prototype.getBoundingClientRect;
    prototype.getBoundingClientRect = function () {
      const { x, y, width, height } = box.call(this);
      const by = zoom.factor === 1 ? 1 : ofBoxes();
      return new DOMRect(x / by, y / by, width / by, height / by);
    };
  }
}
