// @ts-check
// The entries of the glossary. Texts reach the page as text; the pictures are the site's own.

/** @typedef {{ name: string, sentence: string, path: string, title: string, picture: string }} Entry */

/** @param {StreamlitComponent} component */
export default function ({ data, parentElement }) {
  const root = /** @type {ShadowRoot} */ (parentElement);
  /** @type {{ opened: string, entries: Entry[] }} */
  const { opened, entries } = JSON.parse(new TextDecoder().decode(data));
  const list = root.querySelector("ul");
  if (!list) return;

  const cards = entries.map(({ name, sentence, path, title, picture }) => {
    const card = document.createElement("li"),
      heading = document.createElement("h2"),
      text = document.createElement("p"),
      page = document.createElement("a");
    const svg = new DOMParser().parseFromString(picture, "image/svg+xml").documentElement;
    heading.textContent = name;
    text.textContent = sentence;
    page.textContent = title;
    page.href = new URL(path, location.href).href;
    page.dataset.inside = ""; // ui/frame/glossary/ opens it without loading the site again
    page.setAttribute("aria-label", `${name}: learn it on the page ${title}`);
    const words = document.createElement("div");
    words.append(heading, text, page);
    card.append(document.importNode(svg, true), words);
    if (name === opened) card.className = "opened";
    return card;
  });
  list.replaceChildren(...cards);
  root.host.toggleAttribute("data-drawn", true);

  const led = list.querySelector(".opened");
  if (led instanceof HTMLElement && list.dataset.led !== opened) {
    list.dataset.led = opened;
    led.tabIndex = -1;
    requestAnimationFrame(() => {
      led.scrollIntoView({ block: "center" });
      led.focus({ preventScroll: true });
    });
  }
}
