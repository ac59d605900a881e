"""Charts as the browser receives them, read back from a page under AppTest."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import vl_convert
from streamlit.testing.v1 import AppTest


def svg(description: dict[str, Any]) -> str:
    """The chart as Vega draws it."""
    no_address: list[str] = []
    return str(vl_convert.vegalite_to_svg(description, allowed_base_urls=no_address))


@dataclass(frozen=True)
class DrawnChart:
    """A chart of a page.

    description: Vega-Lite, without the rows of the whole chart. rows: those rows; a table without
    columns if every layer has its own. layers: rows that belong to one layer only, in order.
    """

    description: dict[str, Any]
    rows: pd.DataFrame

    @property
    def layers(self) -> list[pd.DataFrame]:
        """The rows of the layers that have their own."""
        layers = self.description.get("layer", [])
        return [pd.DataFrame(layer["data"]["values"]) for layer in layers if "data" in layer]

    @property
    def titles(self) -> list[str]:
        """Every title in it, in the order of the description: of the chart, its axes, legends."""
        return list(_titles(self.description))

    def channel(self, name: str) -> dict[str, Any]:
        """The encoding of a channel such as `x` or `color`: the chart's, else its first layer's."""
        parts = [self.description, *self.description.get("layer", [])]
        return next(part["encoding"][name] for part in parts if name in part.get("encoding", {}))


def drawn_charts(site: AppTest) -> list[DrawnChart]:
    """All charts of a page, from top to bottom."""
    return [_read(element.proto) for element in site.get("vega_lite_chart")]


def _read(proto: Any) -> DrawnChart:
    table = proto.data.data
    rows = pa.ipc.open_stream(table).read_pandas() if table else pd.DataFrame()
    return DrawnChart(json.loads(proto.spec), rows)


def _titles(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        title = part.get("title")
        if isinstance(title, str) and title.strip():
            yield title
        for name, value in part.items():
            if name != "config":
                yield from _titles(value)
    elif isinstance(part, list):
        for value in part:
            yield from _titles(value)
