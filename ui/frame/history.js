// @ts-check
// Gives each opened page exactly one entry in the browser's history, with its full address. Streamlit
// adds an entry whenever Python changes the current page's parameters. When the visitor follows a
// link, it also removes the old page's parameters before it opens the new page.
{
  const push = history.pushState.bind(history);
  /** @type {URL | null} the address of the old page when the link was clicked */
  let left = null;
  document.addEventListener(
    "click",
    ({ target }) => {
      if (target instanceof Element && target.closest("a[href]")) left = new URL(location.href);
    },
    { capture: true },
  );
  history.pushState = (state, unused, url) => {
    const opened = new URL(url ?? "", location.href);
    if (opened.pathname === location.pathname) return history.replaceState(state, unused, url);
    if (left?.pathname === location.pathname) history.replaceState(history.state, "", left);
    left = null;
    push(state, unused, url);
  };
}
