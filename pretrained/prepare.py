"""Make weights ready ahead of time: `python -m pretrained.prepare [--into FOLDER] [model ...]`.

Downloads the models that are named (`gpt2`, or a hub id), converts SmolLM2 into the cache folder
(ATTENTION_LAB_CACHE) and prints what is ready. Meant for building an image or for setting up;
without it the first visitor waits for the conversion.

With `--into` the models lie in that folder and not in the hub's cache, each in a folder of its own,
as the site looks for them in ATTENTION_LAB_MODELS.
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
    """Download the models named, convert what has to be, print the catalogue; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pretrained.prepare")
    parser.add_argument("models", nargs="*", help="names of the catalogue, or hub ids")
    parser.add_argument("--into", type=Path, help="a folder for them instead of the hub's cache")
    options = parser.parse_args(arguments)
    if not all(fetch(name, options.into) for name in options.models):
        return 1
    return _print_catalogue()


def fetch(name: str, into: Path | None = None) -> bool:
    """Download a model unless it is here, and copy it into the folder; whether that went well."""
    with tempfile.TemporaryDirectory() as cache:
        fetched = downloads.fetch_named([name], into=None if into is None else Path(cache))
        for download in fetched:
            if download.wait() != "done":
                print(f"{download.hub_id:24} FAILED: {download.error}", file=sys.stderr)
                return False
        if into is not None:
            source = find(name)
            kept = source.path if source is not None and source.kind == "hub cache" else None
            here = fetched[0].path if fetched else kept
            if here is not None:  # as files, without the links of a cache
                shutil.copytree(here, into / name.replace("/", "--"))
    return True


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
