// @ts-check
// The button next to a code block (`ui/widgets/code_block.py`) selects and copies the code. Without TLS
// browsers have no clipboard API, so the code is only selected.
document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element && target.closest(".code > button");
  const code = button && button.parentElement?.querySelector("code");
  if (!code) return;
  const forget = () => button.removeAttribute("data-copied");
  const say = () => {
    button.setAttribute("data-copied", "");
    button.addEventListener("pointerleave", forget, { once: true });
  };
  getSelection()?.selectAllChildren(code);
  navigator.clipboard?.writeText(code.textContent ?? "").then(say, forget);
});
