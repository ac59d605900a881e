"""Wait until a page is painted, detected from inside the page.

watch(page)  # before opening anything in it
page.goto(url)
wait_until_idle(page)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE_MS = 60_000  # limit for waiting, not a measurement

# Shared start of the scripts that watch a page. `hear` gets mutations of the document and all
# shadow roots, `draws` each canvas that is drawn on; `state.press` is the time of the last key or
# click. Shadow roots and canvases are hooked where they're created.
WATCHING = """
  const watching = (state, hear, draws) => {
    const observer = new MutationObserver(hear);
    const watch = (root) => observer.observe(root, {
      subtree: true, childList: true, attributes: true, characterData: true,
    });
    watch(document);
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (options) {
      const root = attach.call(this, options);
      watch(root);
      return root;
    };
    for (const name of ["fillRect", "clearRect", "strokeRect", "fillText", "fill", "stroke",
                        "drawImage", "putImageData"]) {
      const draw = CanvasRenderingContext2D.prototype[name];
      CanvasRenderingContext2D.prototype[name] = function (...values) {
        draws(this.canvas);
        return draw.apply(this, values);
      };
    }
    const press = () => { state.press = performance.now(); };
    for (const event of ["keydown", "pointerdown"]) document.addEventListener(event, press, true);
  };
"""

# Runs in the page before its own scripts. Only changes in the main area count, not the status
# widget, menus or toasts. An action that doesn't start a run is over once Streamlit would have sent
# it.
_WATCH = (
    f"(() => {{{WATCHING}"
    + """
  const QUIET = 300, NO_RUN = 1200;
  const state = { press: 0, last: 0, ran: 0, drawn: 0 };
  const main = (node) => {
    for (let at = node; at; at = at.parentNode || at.host) {
      if (at.nodeName === "CANVAS" && at !== node) return false;
      if (["stMain", "stPopoverBody"].includes(at.dataset?.testid)) return true;
    }
    return false;
  };
  const running = () => {
    const app = document.querySelector("[data-testid=stApp]");
    return !app || app.dataset.testScriptState !== "notRunning";
  };
  const hear = (records) => {
    const now = performance.now();
    for (const record of records) {
      if (record.attributeName === "data-test-script-state") state.ran = now;
      // children of a canvas (a table for screen readers) are never painted
      else if (record.target.nodeName !== "CANVAS" && main(record.target)) state.last = now;
    }
  };
  watching(state, hear, (canvas) => { if (main(canvas)) state.last = performance.now(); });
  window.__painting = {
    idle: () => {
      const now = performance.now();
      const spinning = document.querySelector(
        "[data-testid=stMain] :is([data-testid=stSpinner], [data-testid=stSkeleton])"
      );
      const begun = state.ran > state.press || now - state.press > NO_RUN;
      return !running() && !spinning && begun && now - state.last > QUIET;
    },
  };
})();
"""
)


def watch(page: Page) -> None:
    """Watch every document that `page` opens from now on."""
    page.add_init_script(_WATCH)


def wait_until_idle(page: Page) -> None:
    """Wait until the script has stopped and nothing has changed for a while."""
    page.wait_for_function(
        "() => window.__painting && window.__painting.idle()", polling=50, timeout=PATIENCE_MS
    )
