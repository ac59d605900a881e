// @ts-check
// The button beside a piece of code (`ui/widgets/code_block.py`) copies the code. Where a browser
// gives no clipboard, as on a page that came without TLS, the code is selected all the same.
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
