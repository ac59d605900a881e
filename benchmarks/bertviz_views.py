"""BertViz's two views of a model's attention in a browser, for `benchmarks.heads`.

requirements-bench.txt lists BertViz and its dependencies. Its pages load require.js, d3 and jQuery
from a CDN. Here those requests are answered with files from npm packages (`npm pack`, checked
against the checksums below, in a temporary folder). npm doesn't have jQuery 2.0.0, so we use 2.1.0;
BertViz only uses it to find and fill elements.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from pretrained.tokenization.tokens import Tokens

WINDOW = {"width": 1440, "height": 1000}
_PATIENCE_MS = 300_000  # BertViz takes most of a minute at 128 tokens

# URL that BertViz loads -> npm package, the file in it, and its SHA-256 checksum.
LIBRARIES = {
    "https://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.6/require.min.js": (
        "requirejs@2.3.6",
        "package/require.js",
        "9485f0917f97fcf4f63a5ea365200ffd57f123f451382a2f9a1ad2e2fd51ac9b",
    ),
    "https://cdnjs.cloudflare.com/ajax/libs/d3/5.7.0/d3.min.js": (
        "d3@5.7.0",
        "package/dist/d3.min.js",
        "bdad5585ef9a965ff25458738309b006058c55f2c78d794d25fbecae35014609",
    ),
    "https://cdnjs.cloudflare.com/ajax/libs/jquery/2.0.0/jquery.min.js": (
        "jquery@2.1.0",
        "package/dist/jquery.min.js",
        "8851e7844413ec986053d7d497ca932861b8622d2369bb291777329c2a713c72",
    ),
}

# Seconds until BertViz's picture, which its script draws all at once, is painted, measured from the
# start of the navigation or from selecting another layer.
_TIME_TO_OPEN = """
() => new Promise((resolve) => {
  const look = () => {
    if (!document.querySelector("#vis svg line")) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() / 1000)));
  };
  look();
})
"""
_OTHER_LAYER = """
(layer) => new Promise((resolve) => {
  const begin = performance.now();
  const select = document.querySelector("#layer");
  select.value = layer;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(
    () => resolve((performance.now() - begin) / 1000)));
})
"""


@dataclass
class Peer:
    """BertViz's times for opening the model view and head view, and for switching layers."""

    model_view: list[float] = field(default_factory=list)
    head_view: list[float] = field(default_factory=list)
    other_layer: list[float] = field(default_factory=list)
    html_bytes: list[int] = field(default_factory=list)


def libraries(folder: Path) -> dict[str, Path]:
    """The libraries that BertViz loads from a CDN, by URL, as files from npm packages.

    Raises: RuntimeError without npm, or for a wrong checksum.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("npm is not installed")
    packages = [package for package, _, _ in LIBRARIES.values()]
    done = subprocess.run(
        [npm, "pack", "--silent", *packages], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"npm pack {' '.join(packages)}: {done.stderr.strip()}")
    files = {}
    for address, (package, name, checksum) in LIBRARIES.items():
        with tarfile.open(folder / f"{package.replace('@', '-')}.tgz") as archive:
            member = archive.extractfile(name)
            content = member.read() if member else b""
        if hashlib.sha256(content).hexdigest() != checksum:
            raise RuntimeError(f"{name} of {package} has the wrong checksum")
        files[address] = folder / f"{package.partition('@')[0]}.js"
        files[address].write_bytes(content)
    return files


def _serve_file(file: Path, route: Route) -> None:
    route.fulfill(path=file, content_type="text/javascript")


class BertViz:
    """BertViz's views of the same weights, opened from files in the same browser."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        if importlib.util.find_spec("bertviz") is None:
            raise RuntimeError("bertviz is not installed (requirements-bench.txt)")
        self._browser, self._folder = browser, folder
        self._libraries = libraries(folder)

    @contextmanager
    def _open_page(self, html: str) -> Iterator[Page]:
        file = self._folder / "view.html"
        file.write_text(f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8")
        page = self._browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        page.set_default_timeout(_PATIENCE_MS)
        for address, library in self._libraries.items():
            page.route(address, partial(_serve_file, library))
        page.goto(file.as_uri(), wait_until="commit", timeout=_PATIENCE_MS)
        yield page
        page.close()

    def measure(self, tokens: Tokens, attention: list[Any], into: Peer) -> None:
        """Open the model view, then the head view, and switch to another layer there."""
        from bertviz import head_view, model_view

        html = model_view(attention, list(tokens.labels), html_action="return").data
        with self._open_page(html) as page:
            into.model_view.append(float(page.evaluate(_TIME_TO_OPEN)))
        into.html_bytes.append(len(html.encode()))
        html = head_view(attention, list(tokens.labels), html_action="return").data
        with self._open_page(html) as page:
            into.head_view.append(float(page.evaluate(_TIME_TO_OPEN)))
            layer = str(len(attention) // 2)
            into.other_layer.append(float(page.evaluate(_OTHER_LAYER, layer)))
