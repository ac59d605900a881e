// @ts-check
// Passes the arrangement to the mosaic with this key, now or when it's drawn later.
/** @param {{ data: { mosaic: string }, parentElement: HTMLElement | ShadowRoot }} component */
export default function (component) {
  const { mosaic, ...arrangement } = component.data,
    { parentElement } = component;
  // this component draws nothing, so the elements below needn't wait for it (layout_shift.js)
  if (parentElement instanceof ShadowRoot) parentElement.host.toggleAttribute("data-drawn", true);
  window.attentionLabArrangements ??= new Map();
  window.attentionLabArrangements.set(mosaic, arrangement);
  window.dispatchEvent(new CustomEvent("attention-lab-arrange", { detail: mosaic }));
}
