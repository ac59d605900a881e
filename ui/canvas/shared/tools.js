// @ts-check
// The toolbar of a figure: download, full screen, table, and help.

const MAX_ROWS = 2_000; // in a table on the page; the CSV file has all rows

/**
 * Inputs of the toolbar. `picture`: the picture to save, null before it's drawn; its `says` is the help
 * text. `keys`: help on using it by keyboard. `table`: its numbers with a header row; undefined if a
 * table can't show the same. `failed`: called with an error message to show below the figure.
 * @typedef {{
 *   picture: () => Picture | null, failed: (text: string) => void, keys?: string,
 *   table?: () => (string | number)[][],
 * }} Tooled
 */

/** @type {(root: ParentNode, listen: Listen, tooled: Tooled) => void} */
function offerTools(root, listen, { picture, failed, keys = "", table }) {
  const find = (/** @type {string} */ selector) => element(root, `.tools ${selector}`),
    numbers = element(root, ".numbers"),
    figure = element(root, ".drawing");
  const toggle = (
    /** @type {string} */ tool,
    /** @type {HTMLElement} */ part,
    open = part.hidden,
  ) => {
    part.hidden = !open;
    find(tool).setAttribute("aria-expanded", String(open));
  };
  const closeMenus = () => {
    toggle(".tool-save", find(".save"), false);
    toggle(".tool-help", find(".help"), false);
  };

  const save = async (/** @type {"png" | "svg" | "csv"} */ kind) => {
    const bare = picture();
    if (!bare) return;
    const drawn = framed(bare);
    if (kind === "csv") {
      const text = new Blob(["\ufeff", csvOf(table?.() ?? [])], { type: "text/csv" });
      download(text, fileName(drawn.name, kind));
    } else download(kind === "png" ? await pngOf(drawn) : svgOf(drawn), fileName(drawn.name, kind));
  };
  for (const kind of /** @type {const} */ (["png", "svg", "csv"])) {
    listen(find(`.${kind}`), "click", () => {
      toggle(".tool-save", find(".save"), false);
      save(kind).catch((error) => failed(`The picture couldn't be saved: ${error.message}`));
    });
  }
  listen(find(".tool-save"), "click", () => {
    toggle(".tool-help", find(".help"), false);
    toggle(".tool-save", find(".save"));
  });
  listen(find(".tool-help"), "click", () => {
    toggle(".tool-save", find(".save"), false);
    find(".help").replaceChildren(...paragraphs([picture()?.says ?? "", keys]));
    toggle(".tool-help", find(".help"));
  });
  listen(find(".tool-table"), "click", () => {
    if (numbers.hidden) numbers.replaceChildren(tableOf(table?.() ?? []));
    toggle(".tool-table", numbers);
  });
  listen(find(".tool-screen"), "click", () => fullScreen(figure));
  listen(figure, "keydown", (event) => {
    const open = !find(".save").hidden || !find(".help").hidden;
    if (event.key !== "Escape" || !open) return;
    event.preventDefault();
    closeMenus();
  });
  listen(figure, "pointerleave", (event) => event.pointerType === "mouse" && closeMenus());
  find(".tool-table").hidden = find(".csv").hidden = !table;
  find(".tool-screen").hidden = !document.fullscreenEnabled;
}

/** Toggle full screen for a figure. @param {HTMLElement} figure */
function fullScreen(figure) {
  const root = /** @type {Document | ShadowRoot} */ (figure.getRootNode());
  if (root.fullscreenElement === figure) document.exitFullscreen();
  else figure.requestFullscreen().catch(() => {}); // the browser may refuse
}

/** @type {(texts: string[]) => HTMLElement[]} */
function paragraphs(texts) {
  return texts.filter(Boolean).map((text) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    return paragraph;
  });
}

/** @type {(rows: (string | number)[][]) => HTMLElement} the first row is the header */
function tableOf([heads = [], ...rows]) {
  const table = document.createElement("table"),
    row = (/** @type {(string | number)[]} */ cells, /** @type {"th" | "td"} */ kind) => {
      const line = document.createElement("tr");
      for (const cell of cells) {
        const made = document.createElement(kind);
        made.textContent = typeof cell === "number" ? number(cell, 6) : cell;
        line.append(made);
      }
      return line;
    };
  const head = document.createElement("thead"),
    body = document.createElement("tbody");
  head.append(row(heads, "th"));
  body.append(...rows.slice(0, MAX_ROWS).map((cells) => row(cells, "td")));
  if (rows.length > MAX_ROWS) body.append(row([`The CSV file has all ${rows.length} rows.`], "td"));
  table.append(head, body);
  return table;
}
