// @ts-check
// Streamlit leaves out what makes a text longer than its box takes, and says nothing. This says it.
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
        `This box takes no more: the ${given.length.toLocaleString("en")} characters that you gave ` +
          "it were left out. Shorten the text.",
      );
      box.reportValidity();
      box.addEventListener("input", () => box.setCustomValidity(""), { once: true });
      box.addEventListener("blur", () => box.setCustomValidity(""), { once: true });
    });
  },
  { capture: true },
);
