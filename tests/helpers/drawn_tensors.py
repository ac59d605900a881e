"""Read what a drawing sends to the browser: a JSON header, then numbers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest


def unpack_drawing(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes after it, which the browser needs aligned to four bytes."""
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    assert length % 4 == 0 or "digest" in header  # the codes of a mosaic are single bytes
    return header, data[4 + length :]


def drawings(site: AppTest) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield header and numbers of each drawing on the page. Rows of chips are JSON only."""
    for element in site.get("bidi_component"):
        proto = element.proto
        if proto.WhichOneof("data") == "bytes" and proto.bytes[:1] != b"{":
            yield unpack_drawing(proto.bytes)


@dataclass(frozen=True)
class DrawnPanel:
    """A drawn tensor: its labels, its values, and the additional data for each value."""

    panel: dict[str, Any]
    values: np.ndarray
    cells: np.ndarray | None
    groups: np.ndarray | None
    operands: np.ndarray | None = None
    added: np.ndarray | None = None


def parse_panels(header: dict[str, Any], body: bytes) -> list[DrawnPanel]:
    """Return the tensors of a picture, in order."""
    result, at = [], 0

    def numbers(panel: dict[str, Any], kind: str, *more: int) -> np.ndarray:
        nonlocal at
        shape = (*panel["shape"], *more)
        count = int(np.prod(shape))
        part = np.frombuffer(body, kind, count, at).reshape(shape)
        at += 4 * count
        return part

    for panel in header["panels"]:
        values = numbers(panel, "<f4")
        cells = numbers(panel, "<i4") if panel["cells"] else None
        groups = numbers(panel, "<i4") if panel["groups"] else None
        provenance = panel["made"] or {}
        operands = numbers(panel, "<f4", provenance["nOperands"], 2) if provenance else None
        added = numbers(panel, "<f4") if provenance.get("added") else None
        result.append(DrawnPanel(panel, values, cells, groups, operands, added))
    assert at == len(body)  # no trailing bytes
    return result


def pictures(site: AppTest) -> list[list[DrawnPanel]]:
    """Return the tensors of every picture on the page."""
    return [parse_panels(*drawing) for drawing in drawings(site) if "panels" in drawing[0]]


def drawn_panels(site: AppTest) -> dict[str, DrawnPanel]:
    """Return every tensor on the page by name."""
    return {one.panel["name"]: one for picture in pictures(site) for one in picture}


def panels(site: AppTest) -> dict[str, np.ndarray]:
    """Return the values of every tensor on the page by name."""
    return {name: one.values for name, one in drawn_panels(site).items()}


def headers_by_title(site: AppTest) -> dict[str, dict[str, Any]]:
    """Return the header of each tensor by its title."""
    return {name: one.panel for name, one in drawn_panels(site).items()}
