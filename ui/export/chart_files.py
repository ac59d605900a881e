"""Vega-Lite charts as SVG and PNG files.

The converter runs Vega inside a JavaScript engine that is compiled into it. Some texts, such as one
with a NUL, abort the whole process that it runs in: it gets a process of its own, which starts when
files are asked for, and ends with them. It needs no network, and no chart may name an address.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Mapping
from typing import Any

SCALE = 2  # of the PNG files: sharp on a screen with small pixels, and in print
WIDTH = 640  # of charts that are as wide as the page on screen
MOST_SECONDS = 60
MOST_IN_LINE = 24  # files that wait for their pictures; others fail at once

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_gate = threading.Lock()  # one conversion at a time: each takes a core and 100 MB
_in_line = threading.BoundedSemaphore(MOST_IN_LINE)


def archive(charts: Mapping[str, Mapping[str, Any]]) -> bytes:
    """A ZIP file with `<name>.svg` and `<name>.png` for every chart.

    Raises: ValueError where too many wait for pictures already, for a chart that names an address,
    and for one that cannot be drawn.
    """
    ready = {name: {"width": WIDTH, **_clean(chart)} for name, chart in charts.items()}
    if not _in_line.acquire(blocking=False):
        raise ValueError(f"{MOST_IN_LINE} files with pictures are being made; try again later")
    try:
        process = _converter(json.dumps(ready).encode())
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"no pictures of {', '.join(ready)} in {MOST_SECONDS} s") from error
    finally:
        _in_line.release()
    if process.returncode:
        message = process.stderr.decode("utf-8", "replace").strip()[-1000:]
        raise ValueError(f"no pictures of {', '.join(ready)}: {message}")
    return process.stdout


def _converter(charts: bytes) -> subprocess.CompletedProcess[bytes]:
    """What the converter says to these charts, once it is free."""
    with _gate:
        return subprocess.run(
            [sys.executable, "-I", __file__],
            input=charts,
            capture_output=True,
            timeout=MOST_SECONDS,
            check=False,
        )


def _clean(part: Any) -> Any:
    """The chart without characters that no SVG can hold; ValueError if it names an address."""
    if isinstance(part, str):
        return _NOT_XML.sub("\ufffd", part)
    if isinstance(part, Mapping):
        if "url" in part:
            raise ValueError("a chart may not load anything from an address")
        return {name: _clean(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_clean(value) for value in part]
    return part


def _convert(charts: dict[str, dict[str, Any]]) -> bytes:
    """Read charts from standard input and write the ZIP file: the main function of the process."""
    import vl_convert

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as files:
        for name, chart in charts.items():
            nothing: list[str] = []  # no address is allowed; None would allow all
            svg = vl_convert.vegalite_to_svg(chart, allowed_base_urls=nothing)
            files.writestr(f"{name}.svg", svg)
            png = vl_convert.vegalite_to_png(chart, scale=SCALE, allowed_base_urls=nothing)
            files.writestr(f"{name}.png", png)
    return file.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(_convert(json.load(sys.stdin.buffer)))
