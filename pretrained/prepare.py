"""Prepares weights ahead of time: `python -m pretrained.prepare [--into FOLDER] [model ...]`.

Downloads the named models (for example `gpt2`, or a Hub id), converts SmolLM2 into the cache folder
(ATTENTION_LAB_CACHE), and prints which models are ready. Use it to set up the site or to build an
image; otherwise the first visitor has to wait for the conversion.

With `--into`, each model is stored in its own folder there instead of in the Hub cache. Use that
folder as ATTENTION_LAB_MODELS.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pretrained.catalog import catalog
from pretrained.hub import downloads
from pretrained.sources import find


def main(arguments: Sequence[str] = ()) -> int:
    """Download models, convert weights, print the catalog, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pretrained.prepare")
    parser.add_argument("models", nargs="*", help="catalog names or Hub ids")
    parser.add_argument("--into", type=Path, help="folder for the models, instead of the Hub cache")
    options = parser.parse_args(arguments)
    if not all(fetch(name, options.into) for name in options.models):
        return 1
    return _print_catalogue()


def fetch(name: str, into: Path | None = None) -> bool:
    """Download a model if it's missing, and copy it to `into`; return whether this succeeded."""
    with tempfile.TemporaryDirectory() as cache:
        fetched = downloads.download_models([name], into=None if into is None else Path(cache))
        for download in fetched:
            if download.wait() != "done":
                print(f"{download.hub_id:24} FAILED: {download.error}", file=sys.stderr)
                return False
        if into is not None:
            source = find(name)
            kept = source.path if source is not None and source.kind == "hub cache" else None
            here = fetched[0].path if fetched else kept
            if here is not None:  # copies the files that the cache's links point to
                shutil.copytree(here, into / name.replace("/", "--"))
    return True


def _print_catalogue() -> int:
    """Convert weights if necessary, print the catalog, and return the exit status."""
    for entry in catalog():
        source = entry.source
        if source is None:
            size = f"{entry.spec.download_bytes / 1e6:,.0f} MB"
            print(f"{entry.spec.name:24} not on this machine, {size}")
            continue
        where = f"{source.kind}: {source.path}"
        if source.kind == "bundled" and entry.spec.architecture == "llama":
            from pretrained import bundled_smollm2

            start = time.perf_counter()
            try:
                where += f" -> {bundled_smollm2.converted_folder(source.path)}"
            except (OSError, ValueError, ImportError) as error:
                print(f"{entry.spec.name:24} FAILED: {error}", file=sys.stderr)
                return 1
            where += f" ({time.perf_counter() - start:.1f} s)"
        print(f"{entry.spec.name:24} ready, {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
