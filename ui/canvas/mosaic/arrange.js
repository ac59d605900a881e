// @ts-check
// Hands the arrangement to the mosaic of that key: at once, and to one that is drawn later.
/** @param {{ data: { mosaic: string } }} component */
export default function (component) {
  const { mosaic, ...arrangement } = component.data;
  window.attentionLabArrangements ??= new Map();
  window.attentionLabArrangements.set(mosaic, arrangement);
  window.dispatchEvent(new CustomEvent("attention-lab-arrange", { detail: mosaic }));
}
