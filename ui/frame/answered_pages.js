// @ts-check
// Adds a check mark to each page with a stored answer (ui/widgets/answer_store.js), in the navigation
// and on cards. It only uses a style sheet, so Streamlit's DOM isn't changed.
{
  const NAME = "attention-lab-answers";
  const QUESTION = /^([a-z][a-z_]{0,60})_quiz_\d+$/; // a page's folder; the address has hyphens instead
  const style = document.createElement("style");

  /** @returns {Set<string>} the addresses of these pages; invalid entries are ignored */
  function pages() {
    try {
      const keys = Object.keys(JSON.parse(localStorage.getItem(NAME) ?? "{}"));
      const folders = keys.map((key) => QUESTION.exec(key)?.[1] ?? "");
      return new Set(folders.filter(Boolean).map((folder) => folder.replaceAll("_", "-")));
    } catch {
      return new Set(); // storage is blocked, or its content isn't JSON
    }
  }

  /** Update the check marks. They don't change the links' accessible names. */
  function tick() {
    const links = [...pages()].map((page) => `[href$="/${page}"], [href="${page}"]`).join();
    const where = ':is([data-testid="stSidebarNavLink"], [class*="st-key-home_card"] a)';
    style.textContent =
      links &&
      `${where}:is(${links})::before ` +
        '{ content: "✓" / ""; position: absolute; right: 0.5rem; color: var(--quiet) }';
  }

  document.head.append(style);
  tick();
  addEventListener(NAME, tick); // an answer was stored in this tab
  addEventListener("storage", tick); // ... or in another tab
}
