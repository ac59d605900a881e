// @ts-check
// A page that is opened is one entry in the browser's history, and keeps its address. Streamlit
// adds an entry whenever Python changes the parameters of the open page; and when a link leads to
// another page, it takes the parameters from the page that is left before it opens the other.
{
  const push = history.pushState.bind(history);
  /** @type {URL | null} the page that is being left, as it was when its link was clicked */
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
