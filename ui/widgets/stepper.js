// @ts-check
// While steps are taken, the page gets no shorter: whoever stands near its end would be thrown up.
// Any other change on the page gives the height back.

/** @type {(component: { data: boolean, parentElement: HTMLElement }) => () => void} */
export default function ({ data: stepped, parentElement }) {
  const root = parentElement.getRootNode(),
    place = root instanceof ShadowRoot ? root.host : parentElement,
    page = place.closest("[data-testid=stMainBlockContainer]");
  place.toggleAttribute("data-drawn", true); // nothing waits for it: see ui/frame/top_down.js
  if (!stepped || !(page instanceof HTMLElement)) return () => {};
  const reserve = () => {
    page.style.minHeight = `${page.offsetHeight}px`;
  };
  const observer = new ResizeObserver(reserve);
  const release = () => {
    observer.disconnect();
    page.style.minHeight = page.style.flexShrink = "";
  };
  page.style.flexShrink = "0"; // with a least height of its own it would get no higher
  reserve();
  observer.observe(page);
  addEventListener("resize", release);
  return () => {
    removeEventListener("resize", release);
    release();
  };
}
