"""What a drawing sends to the browser: a JSON header, then numbers. Read as the browser does."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest


def unpack_drawing(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header, and the bytes after it; the browser wants numbers at a multiple of four."""
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    assert length % 4 == 0 or "digest" in header  # the codes of a mosaic are single bytes
    return header, data[4 + length :]


def drawings(site: AppTest) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Header and numbers of each drawing on the page; rows of chips are plain JSON without any."""
    for element in site.get("bidi_component"):
        proto = element.proto
        if proto.WhichOneof("data") == "bytes" and proto.bytes[:1] != b"{":
            yield unpack_drawing(proto.bytes)


@dataclass(frozen=True)
class DrawnPanel:
    """One tensor: what is written around it, its values, and what else is sent for each of them."""

    panel: dict[str, Any]
    values: np.ndarray
    cells: np.ndarray | None
    groups: np.ndarray | None
    operands: np.ndarray | None = None
    added: np.ndarray | None = None


def parse_panels(header: dict[str, Any], body: bytes) -> list[DrawnPanel]:
    """The tensors of one picture, in order."""
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
        made = panel["made"] or {}
        operands = numbers(panel, "<f4", made["nOperands"], 2) if made else None
        added = numbers(panel, "<f4") if made.get("added") else None
        result.append(DrawnPanel(panel, values, cells, groups, operands, added))
    assert at == len(body)  # nothing else follows
    return result


def pictures(site: AppTest) -> list[list[DrawnPanel]]:
    """The tensors of every picture on the page, picture by picture."""
    return [parse_panels(*drawing) for drawing in drawings(site) if "panels" in drawing[0]]


def drawn_panels(site: AppTest) -> dict[str, DrawnPanel]:
    """Every tensor on the page by its name."""
    return {one.panel["name"]: one for picture in pictures(site) for one in picture}


def panels(site: AppTest) -> dict[str, np.ndarray]:
    """The values of every tensor on the page by its name."""
    return {name: one.values for name, one in drawn_panels(site).items()}


def headers_by_title(site: AppTest) -> dict[str, dict[str, Any]]:
    """What is written around each tensor."""
    return {name: one.panel for name, one in drawn_panels(site).items()}
