// @ts-check
// Ticks off the pages of which this browser keeps an answer (ui/widgets/kept_answers.js), in the
// navigation and on cards. A style sheet does it alone: Streamlit's document stays as it is.
{
  const NAME = "attention-lab-answers";
  const QUESTION = /^([a-z][a-z_]{0,60})_quiz_\d+$/; // a page's folder, whose address has hyphens
  const style = document.createElement("style");

  /** @returns {Set<string>} the addresses; none of what somebody else has written there */
  function pages() {
    try {
      const keys = Object.keys(JSON.parse(localStorage.getItem(NAME) ?? "{}"));
      const folders = keys.map((key) => QUESTION.exec(key)?.[1] ?? "");
      return new Set(folders.filter(Boolean).map((folder) => folder.replaceAll("_", "-")));
    } catch {
      return new Set(); // nothing may be kept here, or it is no JSON
    }
  }

  /** The name of a link stays the same. */
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
  addEventListener(NAME, tick); // an answer was kept
  addEventListener("storage", tick); // in another tab
}
