// @ts-check
// The captions of the tour, and the buttons to go through them.

/**
 * A caption from pages/start/one_pass/story.py. `href`: the address of its lesson. `lit`: whether to
 * highlight the curve at its layer, row and column.
 * @typedef {Partial<Place> & { title: string, text: string, href: string, lit: boolean }} Caption
 */

/**
 * The tour. `retell` takes new captions and continues at the current step; it returns whether the
 * visitor's step was waiting for them. `go` moves the picture to a caption's location, `isThere`
 * returns whether the current captions belong to the tour's head, and `ask` requests missing
 * captions from the server. `kept` is the element that stores the current caption's index, or -1.
 * @type {(root: ParentNode, kept: HTMLElement, listen: Listen, go: (place: Partial<Place>, lit?: boolean) => void,
 *         isThere: () => boolean,
 *         ask: () => void) => { retell: (captions: Caption[]) => boolean }}
 */
function createTour(root, kept, listen, go, isThere, ask) {
  const story = element(root, ".story"),
    begin = element(root, ".begin"),
    find = (/** @type {string} */ selector) => element(story, selector);
  /** @type {Caption[]} */
  let captions = [],
    waits = false; // whether a step is waiting for its captions
  const at = () => Number(kept.dataset.told ?? -1);

  function show(/** @type {number} */ number) {
    waits = number >= 0 && !captions.length;
    if (waits) {
      kept.dataset.told = String(number);
      return;
    }
    const told = Math.min(Math.max(number, -1), captions.length - 1);
    kept.dataset.told = String(told);
    story.hidden = told < 0;
    begin.hidden = told >= 0;
    if (told < 0) return;
    const { title, text, href, lit, ...place } = captions[told];
    find(".caption-title").textContent = title;
    find(".caption-text").textContent = text;
    find(".count").textContent = `${told + 1} of ${captions.length}`;
    find(".before").toggleAttribute("disabled", told === 0);
    find(".after").toggleAttribute("disabled", told === captions.length - 1);
    find(".learn").setAttribute("href", href);
    go(place, lit);
  }

  listen(begin, "click", () => {
    if (captions.length && isThere()) return show(0);
    kept.dataset.told = "0";
    ask();
  });
  listen(find(".before"), "click", () => show(at() - 1));
  listen(find(".after"), "click", () => show(at() + 1));
  listen(find(".end"), "click", () => show(-1));
  return {
    retell: (told) => {
      const waited = waits;
      captions = told;
      if (at() >= 0) show(at());
      return waited;
    },
  };
}
