// @ts-check
// The pictures of a page: their names in addresses and their titles.
// A canvas has its own name (ui/canvas/component.py), and a chart is named by its container
// (ui/charts/show.py).

const PICTURE_NAME = /^[a-z][\w-]{0,79}$/i; // needs no escaping in a CSS selector
const NAMED_PICTURES =
  ".stElementContainer[class*=st-key-]:has([data-testid=stBidiComponentIsolated]), [class*=st-key-picture_]";
const PICTURE_PARAMETERS = ["embed", "embed_options", "picture", "view"];

/**
 * The CSS selector of a picture whose name matches `PICTURE_NAME`.
 * @param {string} name
 */
function pictureWithName(name) {
  return `:is(.st-key-${name}, .st-key-picture_${name})`;
}

/**
 * The name of a picture as used in addresses.
 * @param {Element} picture
 */
function nameOfPicture(picture) {
  const name = [...picture.classList].find((name) => name.startsWith("st-key-")) ?? "";
  return name.replace("st-key-", "").replace(/^picture_/, "");
}

/**
 * The title of a canvas; if it has none, the heading above the picture, and its name.
 * @param {Element} picture
 */
function titleOfPicture(picture) {
  for (const part of picture.querySelectorAll("*")) {
    const title = part.shadowRoot?.querySelector(".title")?.textContent?.trim();
    if (title) return title;
  }
  let above = "";
  for (const heading of document.querySelectorAll(".stMain :is(h1, h2, h3)")) {
    const isAbove = heading.compareDocumentPosition(picture) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (isAbove && heading.textContent) above = heading.textContent;
  }
  const page = location.pathname.split("/").at(-1)?.replaceAll("-", "_") ?? "";
  const words = nameOfPicture(picture).replace(`${page}_`, "").replaceAll("_", " ");
  return `${above} (${words})`;
}

/**
 * The full name of a page, such as "Attention Lab: Scaling".
 * @param {string} heading
 */
function nameOfPage(heading) {
  return heading && heading !== "Attention Lab" ? `Attention Lab: ${heading}` : "Attention Lab";
}

/**
 * The address of a page without the parameters for embedding and special views.
 * @param {string} address
 */
function addressOfPage(address) {
  const url = new URL(address);
  for (const name of PICTURE_PARAMETERS) url.searchParams.delete(name);
  return url.href;
}

/**
 * The HTML code that embeds one picture in another page.
 * @param {string} address of the page @param {string} name of the picture @param {string} title
 * @param {number} width in pixels @param {number} height
 */
function embeddingCode(address, name, title, width, height) {
  const url = new URL(addressOfPage(address));
  url.searchParams.set("embed", "true");
  url.searchParams.set("picture", name);
  const said = (/** @type {string} */ text) =>
    text
      .replaceAll("&", "&amp;")
      .replaceAll('"', "&quot;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;");
  return (
    `<iframe src="${said(url.href)}" title="${said(title)}" width="${Math.ceil(width)}" ` +
    `height="${Math.ceil(height)}" loading="lazy" style="border: 0"></iframe>`
  );
}
