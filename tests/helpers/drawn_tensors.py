"""The tensors that a lesson draws, read back from what is sent to the browser."""

import json
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest


def panels(site: AppTest) -> dict[str, np.ndarray]:
    """The values of every tensor drawn on the page, as the browser receives them, by name."""
    return {panel["name"]: values for panel, values in _drawn(site)}


def described(site: AppTest) -> dict[str, dict[str, Any]]:
    """What is written around each tensor."""
    return {panel["name"]: panel for panel, _ in _drawn(site)}


def _drawn(site: AppTest) -> list[tuple[dict[str, Any], np.ndarray]]:
    found = []
    for element in site.get("bidi_component"):
        data = element.proto.bytes
        at = 4 + int.from_bytes(data[:4], "little")
        for panel in json.loads(data[4:at])["panels"]:
            # nothing but values follows the header
            assert panel["cells"] is panel["groups"] is False
            count = int(np.prod(panel["shape"]))
            values = np.frombuffer(data, "<f4", count, at).reshape(panel["shape"])
            found.append((panel, values))
            at += 4 * count
    return found
