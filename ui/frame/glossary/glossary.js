// @ts-check
// The terms of the glossary, wherever they appear: a dotted line under the first mention in each piece
// of prose, a card when it is pointed at or tapped, and at the end of the page a list of them all for
// the keyboard. Nothing of Streamlit's own document is changed: the lines are a custom highlight, and
// where a browser has none, the rest works without them.
{
  /** @typedef {{ name: string, part: string, spellings: string[], sentence: string, path: string, title: string, picture: string }} Term */
  /** @typedef {{ term: Term, range: Range }} Mention */

  const PROSE = ".stMain :is([data-testid=stMarkdown], [data-testid=stText])";
  const NO_PROSE = "a, button, label, summary, code, kbd, h1, h2, h3, h4, .katex";
  const ENDS_A_WORD = "p, li, td, th, br, div";
  // The page is still being made: see top_down.js.
  const BEING_MADE =
    ".stApp[data-test-script-state]:not([data-test-script-state=notRunning])," +
    ".stMain :is([data-waits], [data-testid=stSkeleton])";
  const CHANGES_MS = 400; // so long changes are gathered before the page is read
  const OPENS_MS = 150,
    CLOSES_MS = 300; // a pointer may cross a term, and takes its way to the card
  const ROOM = 8; // between the card, the term and the edges of the window, in pixels

  /** @type {Map<string, Term>} */
  const terms = new Map();
  /** @type {ReturnType<typeof termFinder> | null} */
  let find = null;
  let isAsked = false,
    isPlanned = false,
    path = location.pathname;
  /** @type {Element[]} */
  let blocks = [];
  /** @type {WeakMap<Element, { text: string, mentions: Mention[] }>} */
  const read = new WeakMap();

  const inIdleTime = (/** @type {() => void} */ work) =>
    "requestIdleCallback" in window
      ? requestIdleCallback(work, { timeout: 2000 })
      : setTimeout(work);

  // ---- finding the terms

  function later() {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(inIdleTime, CHANGES_MS, look);
  }

  function look() {
    isPlanned = false;
    if (document.querySelector(BEING_MADE) || !document.querySelector(PROSE)) return;
    if (find) mark();
    else if (!isAsked) ask();
  }

  async function ask() {
    isAsked = true;
    /** @type {{ terms: Term[], passedOver: string[] } | null} none while the site cannot be reached */
    const glossary = await fetch(new URL("glossary.json", location.href)).then(
      (answer) => (answer.ok ? answer.json() : null),
      () => null,
    );
    if (!glossary) return;
    for (const term of glossary.terms) terms.set(term.name, term);
    find = termFinder(glossary.terms, glossary.passedOver);
    later();
  }

  /** Read what is new of the page's prose. Where nothing is, nothing is done. */
  function mark() {
    const present = [...document.querySelectorAll(PROSE)];
    let isNew = present.length !== blocks.length || present.some((block, i) => block !== blocks[i]);
    blocks = present;
    for (const block of blocks) {
      const text = block.textContent ?? "",
        before = read.get(block);
      const isKnown =
        before?.text === text &&
        before.mentions.every(({ range }) => range.startContainer.isConnected && !range.collapsed);
      if (isKnown) continue;
      isNew = true;
      read.set(block, { text, mentions: mentions(block) });
    }
    if (!isNew) return;
    const all = blocks.flatMap((block) => read.get(block)?.mentions ?? []);
    if (globalThis.Highlight) {
      CSS.highlights.set("term", new Highlight(...all.map(({ range }) => range)));
    }
    showWords(new Set(all.map(({ term }) => term)));
  }

  /** @returns {Mention[]} the first mention of each term in a piece of prose */
  function mentions(/** @type {Element} */ block) {
    /** @type {[text: Text, start: number][]} */
    const texts = [];
    let whole = "";
    const walker = document.createTreeWalker(
      block,
      NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT,
      (node) => {
        if (!(node instanceof Element) || !node.matches(NO_PROSE)) return NodeFilter.FILTER_ACCEPT;
        whole += "\n"; // what is left out parts the words around it
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

  // ---- the words of the page, at its end

  const words = document.createElement("details");
  const list = document.createElement("ul");
  {
    const summary = document.createElement("summary");
    summary.textContent = "Words on this page";
    words.className = "page-words";
    words.append(summary, list);
    words.addEventListener("toggle", fillWords);
  }
  /** @type {Term[]} */
  let wordsOfThePage = [];

  function showWords(/** @type {Set<Term>} */ found) {
    wordsOfThePage = [...found].sort((one, other) => one.name.localeCompare(other.name));
    const page = document.querySelector(".stMainBlockContainer");
    const isGlossary = location.pathname.endsWith("/glossary");
    if (!page || isGlossary || !wordsOfThePage.length) return words.remove();
    if (words.parentElement !== page) page.append(words);
    // in one line with the link to the next page, so that no page gets longer
    const last = page.querySelector(":scope > .stVerticalBlock > :last-child");
    words.classList.toggle("beside", !!last?.querySelector("[data-testid=stPageLink]"));
    fillWords();
  }

  /** While it is closed it holds no words: what searches the page would find them twice. */
  function fillWords() {
    list.replaceChildren(
      ...(words.open ? wordsOfThePage : []).map(({ name, part }) => {
        const entry = document.createElement("li"),
          link = document.createElement("a");
        const address = new URL("glossary", location.origin + path);
        address.searchParams.set("term", name.toLowerCase());
        // of a page that a script opens Streamlit takes every control from the address
        address.searchParams.set("glossary_part", part);
        link.href = address.href;
        link.dataset.inside = link.dataset.term = name;
        link.textContent = name;
        entry.append(link);
        return entry;
      }),
    );
  }

  // ---- the card

  const card = document.createElement("div"),
    pictured = document.createElement("div"),
    title = document.createElement("strong"),
    sentence = document.createElement("p"),
    taught = document.createElement("a");
  card.id = card.className = "term-card";
  card.popover = "manual";
  card.setAttribute("role", "note");
  pictured.className = "picture";
  taught.dataset.inside = "";
  card.append(pictured, title, sentence, taught);

  /** @type {Term | null} what the card explains, while it is open */
  let shown = null;
  /** @type {Term | null} what it will explain in a moment */
  let awaited = null;
  let opening = 0,
    closing = 0;

  function hide() {
    clearTimeout(opening);
    clearTimeout(closing);
    opening = closing = 0;
    awaited = null;
    if (shown && card.isConnected) card.hidePopover();
    shown = null;
  }

  function show(/** @type {Term} */ term, /** @type {DOMRect} */ place) {
    hide();
    shown = term;
    const svg = new DOMParser().parseFromString(term.picture, "image/svg+xml").documentElement;
    pictured.replaceChildren(document.importNode(svg, true));
    title.textContent = term.name;
    sentence.textContent = term.sentence;
    taught.textContent = `Learn it: ${term.title}`;
    taught.href = new URL(term.path, location.href).href;
    taught.hidden = location.pathname.endsWith(`/${term.path}`); // this is the page
    if (!card.isConnected) document.body.append(card);
    card.showPopover();
    const { offsetWidth: width, offsetHeight: height } = card;
    const below = innerHeight - place.bottom - 2 * ROOM,
      above = place.top - 2 * ROOM;
    const isBelow = height <= below || below >= above;
    const most = Math.floor(isBelow ? below : above);
    const middle = place.left + place.width / 2 - width / 2;
    card.style.maxHeight = `${most}px`;
    card.style.left = `${Math.max(ROOM, Math.min(middle, innerWidth - width - ROOM))}px`;
    card.style.top = `${isBelow ? place.bottom + ROOM : place.top - ROOM - Math.min(height, most)}px`;
  }

  /** The term at a place of the window, and where it stands. */
  function termAt(/** @type {EventTarget | null} */ target, x = 0, y = 0) {
    if (!(target instanceof Element)) return null;
    const link = target.closest(".page-words a");
    if (link instanceof HTMLElement) {
      const term = terms.get(link.dataset.term ?? "");
      return term ? { term, place: link.getBoundingClientRect() } : null;
    }
    const block = target.closest(PROSE);
    for (const { term, range } of (block && read.get(block)?.mentions) || []) {
      for (const { left, right, top, bottom } of range.getClientRects()) {
        if (left <= x && x <= right && top <= y && y <= bottom) {
          return { term, place: range.getBoundingClientRect() };
        }
      }
    }
    return null;
  }

  function onPointer(/** @type {PointerEvent} */ { pointerType, target, clientX, clientY }) {
    if (!find || pointerType === "touch") return;
    const at = termAt(target, clientX, clientY);
    document.documentElement.classList.toggle("over-term", !!at);
    const stays = at ? at.term === shown : target instanceof Node && card.contains(target);
    if (stays) {
      clearTimeout(closing);
      closing = 0;
    } else if (shown && !closing && !card.contains(document.activeElement)) {
      closing = setTimeout(hide, CLOSES_MS);
    }
    if (at?.term === awaited) return;
    clearTimeout(opening);
    awaited = at && at.term !== shown ? at.term : null;
    if (at && awaited) opening = setTimeout(show, OPENS_MS, at.term, at.place);
  }

  function onClick(/** @type {MouseEvent} */ event) {
    const link = event
      .composedPath()
      .find((node) => node instanceof HTMLAnchorElement && "inside" in node.dataset);
    if (link instanceof HTMLAnchorElement) return follow(event, link);
    if (event.target instanceof Node && card.contains(event.target)) return;
    const at =
      find &&
      getSelection()?.isCollapsed !== false &&
      termAt(event.target, event.clientX, event.clientY);
    if (at) show(at.term, at.place);
    else hide();
  }

  /** Open another page of the site without loading the site again. */
  function follow(/** @type {MouseEvent} */ event, /** @type {HTMLAnchorElement} */ link) {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    hide();
    const address = new URL(link.href);
    const entry = [...document.querySelectorAll("a[data-testid=stSidebarNavLink]")].find(
      (nav) => nav instanceof HTMLAnchorElement && new URL(nav.href).pathname === address.pathname,
    );
    // as the navigation does it, what the visitor chose goes along
    if (entry instanceof HTMLElement && !address.search) return entry.click();
    const embedded = new URL(location.href).searchParams.get("embed");
    if (embedded) address.searchParams.set("embed", embedded);
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate")); // Streamlit opens the page that the address names
  }

  // ---- what happens

  new MutationObserver(() => {
    if (path !== location.pathname) {
      path = location.pathname;
      words.open = false;
      words.remove(); // another page is being made, which would push it down
      hide();
    }
    later();
  }).observe(document.body, {
    subtree: true,
    childList: true,
    characterData: true,
    attributeFilter: ["data-test-script-state", "data-waits"],
  });
  addEventListener("pointermove", onPointer, { passive: true });
  addEventListener("click", onClick);
  addEventListener("scroll", (event) => event.target !== card && hide(), {
    capture: true,
    passive: true,
  });
  addEventListener("resize", hide);
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !shown) return;
      event.stopPropagation(); // it closes the card alone
      hide();
    },
    { capture: true },
  );
  list.addEventListener("focusin", ({ target }) => {
    const at = termAt(target);
    if (!at || !(target instanceof Element) || !target.matches(":focus-visible")) return;
    show(at.term, at.place);
    target.setAttribute("aria-describedby", card.id);
  });
  list.addEventListener("focusout", hide);
}
