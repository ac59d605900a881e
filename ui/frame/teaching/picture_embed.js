// @ts-check
// `?embed=true&picture=<name>` shows a single picture of a page, for embedding in course pages. A style
// sheet hides everything else before the first paint, so that it stays hidden when the page reruns.
{
  const query = new URLSearchParams(location.search);
  const name = query.get("picture");
  if (query.get("embed") === "true" && name !== null) {
    const root = document.documentElement;
    root.dataset.picture = "";
    const isName = PICTURE_NAME.test(name);
    const wanted = pictureWithName(isName ? name : "no_picture");
    const style = document.createElement("style");
    // everything on the page except the picture, its contents and its ancestors
    style.textContent =
      ".stMain :is(.stElementContainer, .stLayoutWrapper, .stColumn, .stExpander, .stForm, .stPopover)" +
      `:not(${wanted}, ${wanted} *, :has(${wanted})) { display: none }`;
    document.body.append(style);

    const below = document.createElement("aside");
    below.className = "picture-caption";
    below.ariaLabel = "About this picture";
    const [says, facts, link] = ["strong", "span", "a"].map((tag) => document.createElement(tag));
    below.append(says, " ", facts, " ", link);
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener");
    document.body.append(below);

    const say = (/** @type {Element} */ part, /** @type {string} */ text) => {
      if (part.textContent !== text) part.textContent = text; // this triggers the observer, too
    };

    const tell = () => {
      const page = document.querySelector(".stMain h1")?.textContent ?? "";
      say(link, nameOfPage(page));
      link.setAttribute("href", addressOfPage(location.href));
      const end = document.querySelector(".in-class");
      const picture = document.querySelector(`.stMain ${wanted}`);
      const isThere = picture !== null && !picture.closest("details:not([open])");
      below.hidden = !page;
      if (isThere) {
        root.dataset.picture = "";
        say(says, titleOfPicture(picture));
        say(facts, end instanceof HTMLElement ? (end.dataset.facts ?? "") : "");
      } else if (end && document.querySelector("[data-test-script-state=notRunning]")) {
        root.dataset.picture = "missing";
        say(says, `With these settings, the page has no picture called “${name.slice(0, 80)}”.`);
        say(facts, "Open the page to choose another picture:");
      }
    };
    new MutationObserver(tell).observe(document.getElementById("root") ?? document.body, {
      subtree: true,
      childList: true,
      attributeFilter: ["data-drawn", "data-facts", "data-test-script-state"],
    });
  }
}
