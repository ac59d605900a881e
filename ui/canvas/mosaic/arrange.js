// @ts-check
// Hands the arrangement to the mosaic of that key: at once, and to one that is drawn later.
/** @param {{ data: { mosaic: string }, parentElement: HTMLElement | ShadowRoot }} component */
export default function (component) {
  const { mosaic, ...arrangement } = component.data,
    { parentElement } = component;
  // nothing waits for it: see ui/frame/top_down.js
  if (parentElement instanceof ShadowRoot) parentElement.host.toggleAttribute("data-drawn", true);
  window.attentionLabArrangements ??= new Map();
  window.attentionLabArrangements.set(mosaic, arrangement);
  window.dispatchEvent(new CustomEvent("attention-lab-arrange", { detail: mosaic }));
}
