// @ts-check
// Keeps in the browser which pages a visitor has opened. The navigation and the cards of Home tick them
// off, by a style sheet alone: Streamlit's document stays as it is.
{
  const NAME = "attention-lab-visited";
  const PAGE = /^[a-z][a-z-]{0,60}$/; // the last part of an address; Home has none
  const MOST = 100;

  /** @returns {string[]} the pages; none of what somebody else has written there */
  function kept() {
    try {
      const pages = JSON.parse(localStorage.getItem(NAME) ?? "[]");
      return pages.filter((/** @type {unknown} */ page) => PAGE.test(String(page))).slice(0, MOST);
    } catch {
      return []; // nothing may be kept here, or it is no list
    }
  }

  const visited = new Set(kept());
  const style = document.createElement("style");
  let page = "";

  /** The name of a link stays the same; that it was visited, browsers tell a screen reader. */
  function tick() {
    const links = [...visited].map((name) => `[href$="/${name}"], [href="${name}"]`).join();
    const where = ':is([data-testid="stSidebarNavLink"], [class*="st-key-home_card"] a)';
    style.textContent =
      links &&
      `${where}:is(${links})::before ` +
        '{ content: "✓" / ""; position: absolute; right: 0.5rem; color: var(--quiet) }';
  }

  function note() {
    const opened = location.pathname.split("/").at(-1) ?? "";
    if (opened === page) return;
    page = opened;
    if (!PAGE.test(page) || visited.has(page)) return;
    visited.add(page);
    tick();
    try {
      localStorage.setItem(NAME, JSON.stringify([...visited].slice(-MOST)));
    } catch {
      // full, or not allowed: the ticks stay for this visit
    }
  }

  document.head.append(style);
  tick();
  note();
  // Streamlit gives every page that it opens its title
  new MutationObserver(note).observe(document.head, { subtree: true, childList: true });
}
