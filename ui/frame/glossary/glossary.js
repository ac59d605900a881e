// @ts-check
// The glossary on every page: a dotted underline at the first mention of a term in each block of prose,
// a card with its definition on click, and for keyboard users a list of all terms at the end of the
// page. The underlines are a custom highlight, so Streamlit's DOM isn't changed.
{
  /** @typedef {{ name: string, spellings: string[], sentence: string, path: string, title: string }} Term */
  /** @typedef {{ term: Term, range: Range }} Mention */

  const PROSE = ".stMain :is([data-testid=stMarkdown], [data-testid=stText])";
  const NO_PROSE = "a, button, label, summary, code, kbd, h1, h2, h3, h4, .katex";
  const ENDS_A_WORD = "p, li, td, th, br, div";
  // Matches while the page is loading; see layout_shift.js.
  const BEING_MADE =
    ".stApp[data-test-script-state]:not([data-test-script-state=notRunning])," +
    ".stMain :is([data-waits], [data-testid=stSkeleton])";
  const CHANGES_MS = 400; // how long to collect changes before scanning the page
  const GAP = 8; // pixels between the card, the term and the edges of the window

  /** @type {Map<string, Term>} */
  const terms = new Map();
  /** @type {ReturnType<typeof termFinder> | null} */
  let find = null;
  let isRequested = false,
    isPlanned = false,
    path = location.pathname;
  /** @type {Mention[]} */
  let mentions = [];

  // ---- finding the terms

  function later() {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(() => (globalThis.requestIdleCallback ?? setTimeout)(look), CHANGES_MS);
  }

  function look() {
    isPlanned = false;
    if (document.querySelector(BEING_MADE) || !document.querySelector(PROSE)) return;
    if (find) mark();
    else if (!isRequested) load();
  }

  async function load() {
    isRequested = true;
    /** @type {{ terms: Term[], passedOver: string[] } | null} null if the request fails */
    const glossary = await fetch(new URL("glossary.json", location.href)).then(
      (answer) => (answer.ok ? answer.json() : null),
      () => null,
    );
    if (!glossary) return;
    for (const term of glossary.terms) terms.set(term.name, term);
    find = termFinder(glossary.terms, glossary.passedOver);
    later();
  }

  function mark() {
    mentions = [...document.querySelectorAll(PROSE)].flatMap(mentionsIn);
    if (globalThis.Highlight) {
      CSS.highlights.set("term", new Highlight(...mentions.map(({ range }) => range)));
    }
    listWords();
  }

  /** @returns {Mention[]} the first mention of each term in a block of prose */
  function mentionsIn(/** @type {Element} */ block) {
    /** @type {[text: Text, start: number][]} */
    const texts = [];
    let whole = "";
    const walker = document.createTreeWalker(
      block,
      NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT,
      (node) => {
        if (!(node instanceof Element) || !node.matches(NO_PROSE)) return NodeFilter.FILTER_ACCEPT;
        whole += "\n"; // separates the words on both sides of the skipped element
        return NodeFilter.FILTER_REJECT;
      },
    );
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node instanceof Text) {
        texts.push([node, whole.length]);
        whole += node.data;
      } else if (node instanceof Element && node.matches(ENDS_A_WORD)) whole += "\n";
    }
    return (find?.(whole) ?? []).flatMap(({ name, start, end }) => {
      const term = terms.get(name),
        from = texts.findLast(([, at]) => at <= start),
        to = texts.findLast(([, at]) => at < end);
      if (!term || !from || !to) return [];
      const range = new Range();
      range.setStart(from[0], start - from[1]);
      range.setEnd(to[0], Math.min(end - to[1], to[0].length));
      return [{ term, range }];
    });
  }

  /** The definition of a term, with a link to the page that teaches it, unless it's the current one. */
  function explanation(/** @type {"p" | "dd"} */ tag, /** @type {Term} */ term) {
    const element = document.createElement(tag);
    element.append(`${term.sentence} `);
    if (!location.pathname.endsWith(`/${term.path}`)) {
      const link = document.createElement("a");
      link.href = new URL(term.path, location.href).href;
      link.dataset.inside = "";
      link.textContent = `Learn it: ${term.title}`;
      element.append(link);
    }
    return element;
  }

  // ---- the list of terms at the end of the page

  const words = document.createElement("details"),
    summary = document.createElement("summary"),
    list = document.createElement("dl");
  words.className = "page-words";
  summary.textContent = "Terms on this page";
  words.append(summary, list);
  words.addEventListener("toggle", fillWords);
  /** @type {Term[]} */
  let wordsOfThePage = [];

  function listWords() {
    const before = wordsOfThePage;
    wordsOfThePage = [...new Set(mentions.map(({ term }) => term))].sort((one, other) =>
      one.name.localeCompare(other.name),
    );
    const page = document.querySelector(".stMainBlockContainer");
    const isGlossary = location.pathname.endsWith("/glossary");
    if (!page || isGlossary || !wordsOfThePage.length) return words.remove();
    if (words.parentElement !== page) page.append(words);
    // in line with the link to the next page, to save height
    const last = page.querySelector(":scope > .stVerticalBlock > :last-child");
    words.classList.toggle("beside", !!last?.querySelector("[data-testid=stPageLink]"));
    if (before.map(({ name }) => name).join() !== wordsOfThePage.map(({ name }) => name).join())
      fillWords();
  }

  /** Fill the list only while it's open, or the browser's search would find each term twice. */
  function fillWords() {
    list.replaceChildren(
      ...(words.open ? wordsOfThePage : []).flatMap((term) => {
        const name = document.createElement("dt");
        name.textContent = term.name;
        return [name, explanation("dd", term)];
      }),
    );
  }

  // ---- the card of a clicked term

  const card = document.createElement("div");
  card.className = "term-card";
  card.popover = "auto"; // closes on Escape or a click elsewhere
  document.body.append(card);

  function show(/** @type {Mention} */ { term, range }) {
    const name = document.createElement("strong");
    name.textContent = term.name;
    card.replaceChildren(name, explanation("p", term));
    card.showPopover();
    const place = range.getBoundingClientRect(),
      { offsetWidth: width, offsetHeight: height } = card;
    const isBelow = height + GAP < innerHeight - place.bottom;
    card.style.left = `${Math.max(GAP, Math.min(place.left, innerWidth - width - GAP))}px`;
    card.style.top = `${isBelow ? place.bottom + GAP : place.top - GAP - height}px`;
  }

  /** The mention under the pointer. */
  function mentionAt(/** @type {MouseEvent} */ { target, clientX: x, clientY: y }) {
    if (!(target instanceof Element) || !target.closest(PROSE)) return undefined;
    return mentions.find(
      ({ range }) =>
        target.contains(range.commonAncestorContainer) &&
        [...range.getClientRects()].some(
          ({ left, right, top, bottom }) => left <= x && x <= right && top <= y && y <= bottom,
        ),
    );
  }

  /** Open another page through the navigation, without reloading the site. */
  function follow(/** @type {MouseEvent} */ event, /** @type {HTMLAnchorElement} */ link) {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    card.hidePopover();
    /** @type {NodeListOf<HTMLAnchorElement>} */
    const pages = document.querySelectorAll("a[data-testid=stSidebarNavLink]");
    const page = [...pages].find(({ pathname }) => pathname === link.pathname);
    if (!page) return;
    event.preventDefault();
    page.click();
  }

  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[data-inside]");
    if (link instanceof HTMLAnchorElement) return follow(event, link);
    const mention = getSelection()?.isCollapsed !== false && mentionAt(event);
    if (mention) show(mention);
  });
  addEventListener(
    "pointermove",
    (event) => document.documentElement.classList.toggle("over-term", !!mentionAt(event)),
    { passive: true },
  );
  addEventListener("scroll", () => card.hidePopover(), { capture: true, passive: true });
  addEventListener("resize", () => card.hidePopover());

  new MutationObserver(() => {
    if (path !== location.pathname) {
      path = location.pathname;
      words.open = false;
      words.remove(); // the next page would push it down while it loads
      card.hidePopover();
    }
    later();
  }).observe(document.body, {
    subtree: true,
    childList: true,
    characterData: true,
    attributeFilter: ["data-test-script-state", "data-waits"],
  });
}
