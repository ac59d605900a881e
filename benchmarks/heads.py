"""The Heads page compared with BertViz: `python -m benchmarks.heads`.

It starts a server of this site and a headless Chromium. A random model with MiniLM's width and 12
layers of 12 heads runs on texts with an exact number of tokens. BertViz 1.4.1 gets the same
weights. Its two views open in the same browser, alternating with this site's Heads page:

    all heads       Heads: from Ctrl+Enter in a new text until painted, including the model run,
                    the statistics of all heads, and the rest of the page.
                    BertViz: from opening model_view's HTML until painted. Running the model and
                    generating the HTML aren't counted.
    one head        Heads: from the click on a head of the mosaic until painted.
                    BertViz: from choosing another layer in head_view until painted.
    received        Heads: bytes over WebSocket and HTTP after Ctrl+Enter.
                    BertViz: bytes of model_view's HTML.

"Painted" means the second animation frame after the last change: a mutation of the page (including
shadow roots) or a canvas draw call. BertViz builds its page all at once, so its time ends at the
second frame after that. Every text is new, so nothing comes from a cache.

`benchmarks/bertviz_views.py` opens BertViz. Without BertViz or npm, that half is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from attention_core.costs.stopwatch import Samples, paired_ratio
from benchmarks.bertviz_views import WINDOW, BertViz, Peer
from benchmarks.browser import chromium, site
from benchmarks.painting import WATCHING
from benchmarks.timing import machine, table
from serving.heads import HeadId

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from pretrained.tokenization.tokens import Tokens

MODEL = "minilm-12x12"
TRAINED = "all-minilm-l6-v2"
TARGET_TOKENS = 128
TARGET_PAINTED, TARGET_SWITCH, TARGET_BYTES = 2.0, 0.3, 1_500_000
MAX_PAIRED_TOKENS = 64  # up to this many tokens, BertViz is opened as often as this site
_PATIENCE_MS = 300_000  # first run of a model on a busy machine

# Words that are a single token in MiniLM's tokenizer.
_WORDS = """
after again animal answer artist because before better bird blue boat book bread bridge bright
brother brush cold color country cross dark deep door dream early earth evening family farm father
field fire fish flower food forest friend garden glass gold green hand happy heart hill horse house
island kitchen lake land leaf letter light machine market milk mind moon morning mountain music name
night north orange paint paper people plant quiet rain river road room school sea ship silver sister
sky snow song south spring star stone story street summer sun table tower town train tree voice wall
water west white wind window winter woman wood word world year young
"""

# Runs in the page before its own scripts. A change is stored for the figure that contains it
# ("mosaic", "heatmap") and for "page". Two animation frames later it's painted.
_WATCH = (
    f"(() => {{{WATCHING}"
    + """
  const QUIET = 400;
  const state = { press: 0, ran: 0, changed: {}, painted: {}, waiting: false };
  const kinds = (node) => {
    const found = [];
    for (let at = node; at; at = at.parentNode || at.host) {
      if (at.nodeName === "CANVAS" && at !== node) return [];
      if (at.nodeName === "FIGURE") found.push(at.classList[0]);
      if (at.dataset && at.dataset.testid === "stMain") return [...found, "page"];
    }
    return [];
  };
  // the figures of a change are looked up later, once per node instead of once per draw call
  const pending = new Map();
  const frames = () => {
    const asked = performance.now();
    state.waiting = true;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const now = performance.now();
      for (const [node, changed] of pending) {
        if (changed > asked) continue;
        pending.delete(node);
        for (const kind of kinds(node)) {
          state.changed[kind] = Math.max(state.changed[kind] || 0, changed);
          state.painted[kind] = now;
        }
      }
      state.waiting = false;
      if (pending.size) frames();
    }));
  };
  const change = (node) => {
    pending.set(node, performance.now());
    if (!state.waiting) frames();
  };
  const hear = (records) => {
    for (const { target, attributeName } of records) {
      if (attributeName === "data-test-script-state") state.ran = performance.now();
      else if (target.nodeName !== "CANVAS") change(target);
    }
  };
  watching(state, hear, change);
  window.__heads = {
    idle: () => {
      const app = document.querySelector("[data-testid=stApp]");
      const still = performance.now() - Math.max(state.ran, state.changed.page || 0) > QUIET;
      return app && app.dataset.testScriptState === "notRunning" && !state.waiting && still
        && state.ran > state.press && !document.querySelector("[data-testid=stMain] :is("
          + "[data-testid=stSpinner], [data-testid=stSkeleton])");
    },
    seconds: (kind) => ((state.painted[kind] || 0) - state.press) / 1000,
  };
})();
"""
)


@dataclass
class HeadTimings:
    """Measurements at one number of tokens: seconds and bytes, one per repeat."""

    n_tokens: int
    painted: list[float] = field(default_factory=list)  # all heads: the whole page
    mosaic: list[float] = field(default_factory=list)  # all heads: the mosaic
    switch: list[float] = field(default_factory=list)  # another head: the whole page
    heatmap: list[float] = field(default_factory=list)  # another head: its heatmap
    received: list[int] = field(default_factory=list)


def write_model(
    folder: Path, *, n_layers: int = 12, n_heads: int = 12, width: int = 384, seed: int = 0
) -> Path:
    """Write a random BERT with MiniLM's vocabulary in the transformers format.

    Returns the folder. Raises: RuntimeError if the bundled MiniLM is missing.
    """
    import torch
    from transformers import BertConfig, BertModel

    from pretrained import sources

    source = sources.find(TRAINED)
    if source is None:
        raise RuntimeError(f"{TRAINED} is not installed (requirements-weights.txt)")
    config = BertConfig.from_pretrained(source.path)
    config.num_hidden_layers, config.num_attention_heads = n_layers, n_heads
    config.hidden_size, config.intermediate_size = width, 4 * width
    config.initializer_range = 0.07  # with BERT's 0.02, all rows would be nearly uniform
    torch.manual_seed(seed)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(source.path / name, folder / name)
    return folder


def text_of(n_tokens: int, seed: int) -> str:
    """A text of `n_tokens` MiniLM tokens, including [CLS] and [SEP]."""
    if n_tokens < 3:
        raise ValueError(f"n_tokens must be at least 3 ([CLS], a word, [SEP]), got {n_tokens}")
    return " ".join(random.Random(seed).choices(_WORDS.split(), k=n_tokens - 2))


def attention_of(name: str, text: str) -> tuple[Tokens, list[Any]]:
    """The tokens of a text, and the model's weights (1, H, T, T) for each layer."""
    import torch

    import pretrained

    model = pretrained.load(name)
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        records = model.core(torch.tensor([tokens.ids]), record=True).records
    return tokens, [record.weights for record in records]


class HeadsPage:
    """The site's Heads page in a browser, with one model."""

    def __init__(self, browser: Browser, url: str, model: str) -> None:
        self.page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.add_init_script(_WATCH)
        self._received = 0
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.on("response", self._count_response)
        self.page.goto(f"{url}/heads?{urlencode({'heads_model': model})}")
        self._wait()

    def _count(self, frame: str | bytes) -> None:
        self._received += len(frame)

    def _count_response(self, response: Any) -> None:
        self._received += int(response.headers.get("content-length", 0))

    def _wait(self) -> None:
        self.page.wait_for_function("() => window.__heads && window.__heads.idle()", polling=50)

    def _seconds(self, kind: str) -> float:
        return float(self.page.evaluate("(kind) => window.__heads.seconds(kind)", kind))

    def enter(self, text: str, into: HeadTimings) -> None:
        """Type a text, press Enter, and record the time until all heads are painted.

        Raises: RuntimeError if the mosaic wasn't repainted.
        """
        canvas = self.page.locator("figure.mosaic .scroll canvas")
        before = canvas.get_attribute("data-painted")
        self.page.get_by_label("Sentence", exact=True).fill(text)
        self._received = 0
        self.page.keyboard.press("Enter")
        self._wait()
        if canvas.get_attribute("data-painted") in (None, before):
            raise RuntimeError("the mosaic wasn't repainted")
        into.painted.append(self._seconds("page"))
        into.mosaic.append(self._seconds("mosaic"))
        into.received.append(self._received)

    def open_head(self, which: int, n_heads: int, into: HeadTimings) -> None:
        """Click a head of the mosaic, and record the time until the page shows it.

        Raises: RuntimeError if the page doesn't show it.
        """
        canvas = self.page.locator("figure.mosaic .scroll canvas")
        places = json.loads(canvas.get_attribute("data-heads") or "[]")
        half = float(canvas.get_attribute("data-size") or 0) / 2
        number, x, y = places[which % len(places)]
        position = {"x": x + half, "y": y + half}
        canvas.hover(position=position)  # type: ignore[arg-type]
        canvas.click(position=position)  # type: ignore[arg-type]
        self._wait()
        layer, head = divmod(number, n_heads)
        title = f"{HeadId(layer, head)}:"
        if title not in self.page.locator("figure.heatmap .title").first.inner_text():
            raise RuntimeError(f"the page doesn't show {title}")
        into.switch.append(self._seconds("page"))
        into.heatmap.append(self._seconds("heatmap"))

    def close(self) -> None:
        """Close the page."""
        self.page.close()


def measure_size(
    page: HeadsPage, bertviz: BertViz | None, n_tokens: int, *, repeats: int, n_heads: int = 12
) -> tuple[HeadTimings, Peer]:
    """Measure the site and BertViz in turn at one number of tokens, after warming up the site."""
    ours, peer = HeadTimings(n_tokens), Peer()
    warm = HeadTimings(n_tokens)
    page.enter(text_of(n_tokens, seed=n_tokens), warm)
    page.open_head(1, n_heads, warm)
    peer_repeats = repeats if n_tokens <= MAX_PAIRED_TOKENS else 1
    for repeat in range(repeats):
        text = text_of(n_tokens, seed=1000 * n_tokens + repeat)
        page.enter(text, ours)
        for step in range(3):
            page.open_head(5 + 17 * repeat + 29 * step, n_heads, ours)
        if bertviz is not None and repeat < peer_repeats:
            bertviz.measure(*attention_of(MODEL, text), peer)
    return ours, peer


def report(results: Sequence[tuple[HeadTimings, Peer]]) -> str:
    """The results as a table: one line per measure and number of tokens, with ratios."""
    rows: list[tuple[str, ...]] = [("", "tokens", "Heads", "BertViz", "BertViz / Heads")]
    for ours, peer in results:
        n = str(ours.n_tokens)
        rows += [
            ("all heads, s", n, *_comparison_cells(ours.painted, peer.model_view)),
            ("  mosaic only, s", n, *_comparison_cells(ours.mosaic, [])),
            ("head view opened, s", n, "-", _spread(peer.head_view), "-"),
            ("another head or layer, s", n, *_comparison_cells(ours.switch, peer.other_layer)),
            ("  heatmap only, s", n, *_comparison_cells(ours.heatmap, [])),
            (
                "received, MB",
                n,
                *_comparison_cells(_megabytes(ours.received), _megabytes(peer.html_bytes)),
            ),
        ]
    return table(rows)


def _megabytes(counts: Sequence[int]) -> list[float]:
    return [count / 1e6 for count in counts]


def _spread(values: Sequence[float]) -> str:
    return f"{Samples(tuple(values)):.2f}" if values else "-"


def _comparison_cells(ours: Sequence[float], theirs: Sequence[float]) -> tuple[str, str, str]:
    """Our time, theirs and the ratio: paired if the counts are equal, else of medians."""
    if not theirs:
        return _spread(ours), "-", "-"
    if len(ours) == len(theirs):
        ratio = f"{paired_ratio(theirs, ours):.1f}"
    else:
        ratio = f"{Samples(tuple(theirs)).median / Samples(tuple(ours)).median:.1f}"
    return _spread(ours), _spread(theirs), ratio


def verdicts(ours: HeadTimings) -> list[str]:
    """The medians compared with the targets."""
    lines = []
    for name, values, target, unit in (
        ("all heads painted", ours.painted, TARGET_PAINTED, "s"),
        ("another head painted", ours.switch, TARGET_SWITCH, "s"),
        ("received", _megabytes(ours.received), TARGET_BYTES / 1e6, "MB"),
    ):
        median = Samples(tuple(values)).median
        verdict = "reached" if median <= target else "not reached"
        lines.append(f"{name}: {median:.2f} {unit}; target {target} {unit}: {verdict}")
    return lines


def _bertviz(browser: Browser, folder: Path, wanted: bool) -> BertViz | None:
    if not wanted:
        return None
    try:
        return BertViz(browser, folder)
    except RuntimeError as error:
        print(f"Without BertViz: {error}.\n", file=sys.stderr)
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heads")
    parser.add_argument("--tokens", type=int, nargs="+", default=[32, 128, 256])
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each, after one warm-up")
    parser.add_argument(
        "--bertviz-tokens",
        type=int,
        default=128,
        help="the most tokens to open BertViz with; 0 skips it",
    )
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if min(options.tokens) < 3:
        parser.error("--tokens must be at least 3: [CLS], a word, [SEP]")
    os.environ["HF_HUB_OFFLINE"] = "1"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = folder / "models"
        os.environ["ATTENTION_LAB_MODELS"] = str(models)
        write_model(models / MODEL)
        with chromium() as browser, site(ATTENTION_LAB_MODELS=str(models)) as url:
            bertviz = _bertviz(browser, folder, options.bertviz_tokens >= min(options.tokens))
            page = HeadsPage(browser, url, MODEL)
            results = []
            for n_tokens in options.tokens:
                peer = bertviz if n_tokens <= options.bertviz_tokens else None
                results.append(measure_size(page, peer, n_tokens, repeats=options.repeats))
                print(f"{n_tokens} tokens measured", file=sys.stderr, flush=True)
            page.close()
            page = HeadsPage(browser, url, TRAINED)
            trained, _ = measure_size(page, None, TARGET_TOKENS, repeats=options.repeats)
    print("12 layers x 12 heads of size 32, random weights: this site's Heads page and BertViz")
    print(f"{machine()}; median (min..max); {time.monotonic() - begin:.0f} s total\n")
    print(report(results))
    print(f"\nTrained weights, {TRAINED}, 6 layers x 12 heads:\n")
    print(report([(trained, Peer())]))
    return _judge([ours for ours, _ in results])


def _judge(results: Sequence[HeadTimings]) -> int:
    """Print the verdicts at `TARGET_TOKENS`; returns 1 if a target is missed."""
    lines = [line for ours in results if ours.n_tokens == TARGET_TOKENS for line in verdicts(ours)]
    if lines:
        print(f"\nAt {TARGET_TOKENS} tokens:", *lines, sep="\n")
    return int(any("not reached" in line for line in lines))


if __name__ == "__main__":
    raise SystemExit(main())
