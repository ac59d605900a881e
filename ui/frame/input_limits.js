// @ts-check
// Streamlit silently drops input that would exceed a text box's limit. This shows a message.
document.addEventListener(
  "beforeinput",
  (event) => {
    const box = event.composedPath()[0];
    if (!(box instanceof HTMLInputElement || box instanceof HTMLTextAreaElement)) return;
    const { value, selectionStart, selectionEnd } = box,
      given = event.data ?? "";
    const replaced = value.slice(selectionStart ?? 0, selectionEnd ?? 0);
    if (!event.inputType.startsWith("insert") || !given || given === replaced) return;
    setTimeout(() => {
      if (box.value !== value) return;
      box.setCustomValidity(
        `This text would be too long, so ${given.length.toLocaleString("en")} characters weren't ` +
          "added. Shorten the text and try again.",
      );
      box.reportValidity();
      box.addEventListener("input", () => box.setCustomValidity(""), { once: true });
      box.addEventListener("blur", () => box.setCustomValidity(""), { once: true });
    });
  },
  { capture: true },
);
