// @ts-check
// Passes an opened layer and head to the picture with this name, now or when it's drawn later.
/** @param {StreamlitComponent} component */
export default function (component) {
  markHeightFinal(component.parentElement);
  const opened = unpackNumbers(component.data);
  window.attentionLabOpened ??= new Map();
  window.attentionLabOpened.set(opened.picture, opened);
  window.dispatchEvent(new CustomEvent("attention-lab-opened", { detail: opened.picture }));
}
