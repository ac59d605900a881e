"""Make weights ready ahead of time: `python -m pretrained.prepare [--into FOLDER] [model ...]`.

Downloads the models that are named (`gpt2`, or a hub id), converts SmolLM2 into the cache folder
(ATTENTION_LAB_CACHE) and prints what is ready. Meant for building an image or for setting up;
without it the first visitor waits for the conversion.

With `--into` the models lie in that folder and not in the hub's cache, each in a folder of its own,
as the site looks for them in ATTENTION_LAB_MODELS.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pretrained.catalog import catalog
from pretrained.hub import downloads
from pretrained.sources import find


def main(arguments: Sequence[str] = ()) -> int:
    """Download the models named, convert what has to be, print the catalogue; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pretrained.prepare")
    parser.add_argument("models", nargs="*", help="names of the catalogue, or hub ids")
    parser.add_argument("--into", type=Path, help="a folder for them instead of the hub's cache")
    options = parser.parse_args(arguments)
    if options.into is None:
        fetched = _fetch(options.models)
    else:
        with tempfile.TemporaryDirectory() as cache, _hub_cache_at(cache):
            fetched = _fetch(options.models)
            if fetched:
                _copy(options.models, options.into)
    return _print_catalogue() if fetched else 1


@contextmanager
def _hub_cache_at(folder: str) -> Iterator[None]:
    before = os.environ.get("HF_HUB_CACHE")
    os.environ["HF_HUB_CACHE"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["HF_HUB_CACHE"]
        else:
            os.environ["HF_HUB_CACHE"] = before


def _fetch(names: Sequence[str]) -> bool:
    """Download these models; whether all are there."""
    for download in downloads.fetch_named(names):
        if download.wait() != "done":
            print(f"{download.hub_id:24} FAILED: {download.error}", file=sys.stderr)
            return False
    return True


def _copy(names: Sequence[str], folder: Path) -> None:
    """Copy what was downloaded into `folder`, without the links of the hub's cache."""
    for name in names:
        source = find(name)
        if source is not None and source.kind == "hub cache":
            shutil.copytree(source.path, folder / name.replace("/", "--"))


def _print_catalogue() -> int:
    """Convert what has to be, print what is ready; the exit status."""
    for entry in catalog():
        source = entry.source
        if source is None:
            print(f"{entry.spec.name:24} not here, {entry.spec.download_bytes / 1e6:,.0f} MB")
            continue
        where = f"{source.kind}: {source.path}"
        if source.kind == "bundled" and entry.spec.architecture == "llama":
            from pretrained import bundled_smollm2

            start = time.perf_counter()
            try:
                where += f" -> {bundled_smollm2.converted(source.path)}"
            except (OSError, ValueError, ImportError) as error:
                print(f"{entry.spec.name:24} FAILED: {error}", file=sys.stderr)
                return 1
            where += f" ({time.perf_counter() - start:.1f} s)"
        print(f"{entry.spec.name:24} ready, {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
