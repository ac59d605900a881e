// Hands the arrangement to the mosaic of that key: at once, and to one that is drawn later.
export default function (component) {
  const { mosaic, ...arrangement } = component.data;
  const kept = (window.attentionLabArrangements ??= new Map());
  kept.set(mosaic, arrangement);
  window.dispatchEvent(new CustomEvent("attention-lab-arrange", { detail: mosaic }));
}
