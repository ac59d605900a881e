"""Make weights ready ahead of time: `python -m pretrained.prepare [model ...]`.

Downloads the models that are named (`gpt2`, or a hub id), converts SmolLM2 into the cache folder
(ATTENTION_LAB_CACHE) and prints what is ready. Meant for building an image or for setting up;
without it the first visitor waits for the conversion.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from pretrained.catalog import catalog
from pretrained.hub import downloads


def main(names: Sequence[str] = ()) -> int:
    """Download the models named, convert what has to be, print the catalogue; the exit status."""
    for download in downloads.fetch_named(names):
        if download.wait() != "done":
            print(f"{download.hub_id:24} FAILED: {download.error}", file=sys.stderr)
            return 1
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
