"""Pictures of the site as one HTML file that opens without a network and asks for nothing.

The same component files that Streamlit mounts are put into one page, each in a shadow root of its
own; `ui.export.html_file` has what keeps a visitor's text from being more than text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st

from ui.canvas.component import Canvas
from ui.export import html_file

MAX_BYTES = 96 * 1024**2

Data = bytes | Mapping[str, Any]


@dataclass(frozen=True)
class OfflineComponent:
    """One component: the three texts that `st.components.v2.component` takes, and its data.

    data: bytes, or a mapping that JSON can hold, as the component is given it on the site.
    follows: the name of a state or trigger value ("open") that any part of the page may set; when
    it is set to `v`, this part is drawn again with `variants[v]`, and where there is none, the text
    `missing` is shown. Values are compared as text.
    """

    html: str
    css: str
    js: str
    data: Data
    follows: str = ""
    variants: Mapping[int | str, Data] = field(default_factory=dict)
    missing: str = "This file does not hold what was chosen."

    @classmethod
    def of(cls, canvas: Canvas, data: Data, **options: Any) -> OfflineComponent:
        """A drawing of the site."""
        return cls(canvas.html, canvas.css, canvas.js, data, **options)


def page(title: str, parts: Sequence[OfflineComponent], notes: Sequence[str] = ()) -> str:
    """The HTML text of a page with this title, these paragraphs of plain text, and the parts.

    Title, notes and data may hold anything. The parts' html, css and js are the site's own.
    Raises: ValueError for a script that is not one `export default` without imports, and for a
    page above `MAX_BYTES`.
    """
    scripts = list(dict.fromkeys(part.js for part in parts))
    factories = ",\n".join(
        f"() => {{\n{html_file.exported(js)}\nreturn exported;\n}}" for js in scripts
    )
    script = f"const FACTORIES = [\n{factories}\n];\n{_asset('.js')}"
    blocks, described = [], []
    for i, part in enumerate(parts):
        variants = {"": part.data, **{str(value): data for value, data in part.variants.items()}}
        blocks += [
            html_file.inert(f"data-{i}-{j}", _bytes(data))
            for j, data in enumerate(variants.values())
        ]
        described.append(
            {
                "html": part.html,
                "css": part.css,
                "factory": scripts.index(part.js),
                "values": list(variants),
                "json": [not isinstance(data, bytes) for data in variants.values()],
                "follows": part.follows,
                "missing": part.missing,
            }
        )
    size = sum(map(len, blocks))
    if size > MAX_BYTES:
        raise ValueError(f"the page would hold {size:,} bytes, the limit is {MAX_BYTES:,}")
    blocks.append(html_file.inert("parts", json.dumps(described).encode()))
    sections = "\n".join(f'<section id="part-{i}"></section>' for i in range(len(parts)))
    return html_file.page(
        title,
        f"{html_file.paragraphs(notes)}\n{sections}",
        blocks,
        style=html_file.themes(st.get_option) + _asset(".css"),
        script=script,
    )


def _asset(ending: str) -> str:
    return Path(__file__).with_suffix(ending).read_text(encoding="utf-8")


def _bytes(data: Data) -> bytes:
    return data if isinstance(data, bytes) else json.dumps(dict(data)).encode()
