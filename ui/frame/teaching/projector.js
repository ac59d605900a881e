// @ts-check
// `?view=clean` shows only the page, with larger text (teaching.css). The parameter is read before the
// first paint and is preserved when widgets or links change the address.
{
  const root = document.documentElement;
  const isClean = () => root.dataset.view === "clean";

  /** @param {boolean} clean */
  const show = (clean) => {
    if (clean === isClean()) return;
    if (clean) root.dataset.view = "clean";
    else delete root.dataset.view;
  };
  const asTheAddressSays = () => show(new URLSearchParams(location.search).get("view") === "clean");
  asTheAddressSays();
  addEventListener("popstate", asTheAddressSays);

  /** @param {string | URL} address @param {boolean} clean */
  const viewed = (address, clean) => {
    const url = new URL(address, location.href);
    if (clean) url.searchParams.set("view", "clean");
    else url.searchParams.delete("view");
    return url;
  };
  for (const name of /** @type {const} */ (["pushState", "replaceState"])) {
    const change = history[name].bind(history);
    history[name] = (state, unused, url) =>
      change(state, unused, isClean() ? viewed(url ?? "", true) : url);
  }

  /** Switch the view with a new history entry, so that the back button undoes it. */
  const change = (/** @type {boolean} */ clean) => {
    show(clean);
    const url = viewed(location.href, clean);
    History.prototype.pushState.call(history, history.state, "", url);
  };
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest(".in-class .projector")) return;
    event.preventDefault();
    change(true);
  });

  const way = document.createElement("nav");
  way.className = "leave-projector";
  way.ariaLabel = "Projector view";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Exit projector view";
  button.addEventListener("click", () => change(false));
  way.append(button);
  document.body.prepend(way); // first in the tab order
}
