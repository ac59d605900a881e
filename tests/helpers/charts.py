"""Read charts back from a page under AppTest, as sent to the browser."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import vl_convert
from streamlit.testing.v1 import AppTest


def svg(description: dict[str, Any]) -> str:
    """Render the chart as SVG with Vega."""
    no_address: list[str] = []
    return str(vl_convert.vegalite_to_svg(description, allowed_base_urls=no_address))


@dataclass(frozen=True)
class DrawnChart:
    """A chart on a page.

    description: the Vega-Lite specification without the chart's rows. rows: those rows; a table
    without columns if every layer has its own. layers: rows of individual layers, in order.
    """

    description: dict[str, Any]
    rows: pd.DataFrame

    @property
    def layers(self) -> list[pd.DataFrame]:
        """Return the rows of the layers that have their own."""
        layers = self.description.get("layer", [])
        return [pd.DataFrame(layer["data"]["values"]) for layer in layers if "data" in layer]

    @property
    def titles(self) -> list[str]:
        """Return all titles (chart, axes, legends) in specification order."""
        return list(_titles(self.description))

    def channel(self, name: str) -> dict[str, Any]:
        """Return the encoding of a channel such as `x` or `color`.

        It's the chart's own, or else that of its first layer.
        """
        parts = [self.description, *self.description.get("layer", [])]
        return next(part["encoding"][name] for part in parts if name in part.get("encoding", {}))


def drawn_charts(site: AppTest) -> list[DrawnChart]:
    """Return all charts on a page, from top to bottom."""
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
