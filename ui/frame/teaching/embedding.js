// @ts-check
// The section "Embed a picture" below every page. When it's open, it shows the HTML code that
// embeds one of the page's current pictures in a course page.
{
  const ROOM_OF_CAPTION = 72; // pixels below the picture
  const EDGES = 16; // pixels to the left and right of the picture together

  /** @param {Element} place */
  const write = (place) => {
    const pictures = [...document.querySelectorAll(NAMED_PICTURES)].filter(
      (picture) =>
        /** @type {HTMLElement} */ (picture).offsetHeight > 40 &&
        !picture.closest(".stExpander") &&
        PICTURE_NAME.test(nameOfPicture(picture)),
    );
    place.replaceChildren();
    // the notes below refer to the code
    for (const text of place.parentElement?.querySelectorAll("p") ?? [])
      text.hidden = !pictures.length;
    if (!pictures.length) {
      place.append("There's no picture on this page right now.");
      return;
    }
    const label = document.createElement("label"),
      choice = document.createElement("select"),
      block = document.createElement("div"),
      copy = document.createElement("button"),
      text = document.createElement("pre"),
      code = document.createElement("code");
    const titles = pictures.map(titleOfPicture).map((title, index, all) => {
      const before = all.slice(0, index).filter((other) => other === title).length;
      return before ? `${title} (${before + 1})` : title;
    });
    choice.append(...titles.map((title, index) => new Option(title, String(index))));
    label.append("Picture ", choice);
    block.className = "code";
    copy.type = "button";
    copy.ariaLabel = copy.title = "Copy";
    text.append(code);
    block.append(copy, text);
    const show = () => {
      const picture = /** @type {HTMLElement} */ (pictures[Number(choice.value)]);
      const page = nameOfPage(document.querySelector(".stMain h1")?.textContent ?? "");
      code.textContent = embeddingCode(
        location.href,
        nameOfPicture(picture),
        `${page}, ${titles[Number(choice.value)]}`,
        picture.offsetWidth + EDGES,
        picture.offsetHeight + ROOM_OF_CAPTION,
      );
    };
    choice.addEventListener("change", show);
    show();
    place.append(label, block);
  };

  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (!(target instanceof HTMLDetailsElement) || !target.matches(".in-class details")) return;
      const place = target.querySelector(".embedding");
      if (target.open && place) write(place);
    },
    { capture: true }, // it does not bubble
  );
}
