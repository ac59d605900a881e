"""The tour of one pass as a single HTML file that works without the site or a network.

The file contains the picture's scripts, the data of the whole picture and, for every layer, the
compressed numbers of the heads that can be opened. Its `offline.js` passes them to the picture like
the site does.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from pages.start.one_pass import story
from pages.start.one_pass.locations import Location
from pages.start.one_pass.story import StoryContext
from serving.heads import strongest_tokens
from serving.one_pass import (
    N_NEURONS,
    STRIPS,
    HeadDetail,
    LayerDetail,
    OnePass,
    head_detail,
    layer_detail,
)
from ui.canvas import one_pass
from ui.canvas.component import with_caption
from ui.canvas.one_pass.picture import picture
from ui.export import html_file
from ui.widgets.head_choice import HeadChoice

MAX_BYTES = 20_000_000  # a file that would be larger doesn't include all heads
# File size per byte of float32 numbers. Deflate saves a fifth and base64 adds a third. For SmolLM2
# on 10 to 62 tokens it's 1.05 to 1.10.
_WRITTEN = 1.08
_SCRIPTS = 250_000  # bytes of everything else: scripts, captions, the whole picture
_KEY = "walk"  # name of the picture in the file
_HEAD_TENSORS = tuple(step for step in story.STEPS if step not in ("k", "v"))


@dataclass(frozen=True, eq=False)
class OfflineTour:
    """The parts of the page that go into the file.

    choice: the head that is open. visited: layers and heads that the visitor has opened.
    facts: the caption fields of saved pictures.
    """

    passed: OnePass
    off: tuple[str, ...]
    place: Location | None
    choice: HeadChoice
    visited: frozenset[tuple[int, int]]
    facts: Mapping[str, str]

    @property
    def title(self) -> str:
        """The file's title."""
        return f"A walk through {self.passed.run.title}"


def heads(walk: OfflineTour) -> dict[int, list[int]]:
    """The heads that can be opened in the file, by layer.

    All heads if the file stays small enough. Otherwise, the head with the open head's index in
    every layer, and the heads that the visitor has opened.
    """
    n_layers, n_heads = walk.passed.run.q.shape[:2]
    every = {layer: list(range(n_heads)) for layer in range(n_layers)}
    if file_bytes(walk.passed, every) <= MAX_BYTES:
        return every
    return {
        layer: sorted(
            {walk.choice.head} | {head for opened, head in walk.visited if opened == layer}
        )
        for layer in range(n_layers)
    }


def file_bytes(passed: OnePass, held: Mapping[int, list[int]]) -> int:
    """Estimate the size of a file with these heads from the sizes of its matrices.

    Query heads that read the same keys and values share them in the file.
    """
    run = passed.run
    (tokens, size), strip = run.q.shape[2:], passed.final_states.shape[1]
    a_head = 2 * tokens * size + 3 * tokens * tokens + size * strip + tokens * strip
    shared = 2 * tokens * size
    a_layer = tokens * (len(STRIPS) * (strip + 1) + 3 * N_NEURONS)
    floats = sum(
        a_layer + len(some) * a_head + len({run.kv_head(head) for head in some}) * shared
        for some in held.values()
    )
    return int(_SCRIPTS + 4 * floats * _WRITTEN)


def description(walk: OfflineTour) -> str:
    """Describe the file's contents and size, for the page and for the file itself."""
    held = heads(walk)
    size = file_bytes(walk.passed, held) / 1e6
    n_layers, n_heads = walk.passed.run.q.shape[:2]
    what = f"all {n_heads} heads of all {n_layers} layers"
    if any(len(some) < n_heads for some in held.values()):
        what = (
            f"head {walk.choice.head} of every layer and all heads that were opened on the page "
            f"(with {what} it would be more than {MAX_BYTES / 1e6:.0f} MB)"
        )
    return f"The HTML file, about {size:.1f} MB, holds {what}, each number as the tensor has it."


def page(walk: OfflineTour) -> bytes:
    """The file as HTML.

    Raises: the errors of opening a layer.
    """
    passed = walk.passed
    header = {"picture": _KEY, "off": list(walk.off), "place": walk.place, "lookOnly": True}
    whole = one_pass.pack_pass(picture(passed), header)
    data = [html_file.inert_element("whole", with_caption(whole, walk.facts))]
    for layer, some in heads(walk).items():
        data.append(html_file.inert_element(f"layer-{layer}", _layer(walk, layer, some)))
    start = f'<div id="walk" data-layer="{walk.choice.layer}" data-head="{walk.choice.head}"></div>'
    return html_file.page(
        walk.title,
        f"{html_file.paragraphs([_INSTRUCTIONS])}\n{start}\n{html_file.paragraphs(_notes(walk))}",
        data,
        style=html_file.themes(st.get_option) + _asset("css"),
        script=f"{html_file.wrap_exports(one_pass.canvas.js)}\n{_elements()}\n{_asset('js')}",
    ).encode()


_INSTRUCTIONS = (
    "Point at a word to see what it takes from the others. Click a curve to open the head that "
    "carries it; Escape goes back. This file needs no network."
)


def _notes(walk: OfflineTour) -> list[str]:
    run, off = walk.passed.run, " ".join(walk.off)
    notes = [f"Model: {run.title}. Text: {run.tokens.text}", description(walk)]
    return [*notes, f"Switched off in this pass: {off}."] if off else notes


def _asset(ending: str) -> str:
    return Path(__file__).with_suffix(f".{ending}").read_text(encoding="utf-8")


def _elements() -> str:
    """The picture's elements and styles as constants for the script."""
    texts = {"PICTURE_HTML": one_pass.canvas.html, "PICTURE_CSS": one_pass.canvas.css}
    return "\n".join(f"const {name} = {html_file.js_string(text)};" for name, text in texts.items())


def _layer(walk: OfflineTour, number: int, some: list[int]) -> bytes:
    """A layer and some of its heads, compressed, in the format that `offline.js` unpacks.

    Keys and values are stored once for all heads that share them.
    """
    run = walk.passed.run
    layer = layer_detail(run, number)
    numbers = story.layer_data(layer)
    described_heads: dict[int, dict[str, Any]] = {}
    for head in some:
        opened, shared = head_detail(run, number, head), run.kv_head(head)
        numbers |= {f"head {head} {step}": getattr(opened, step) for step in _HEAD_TENSORS}
        numbers |= {f"shared {shared} {step}": getattr(opened, step) for step in ("k", "v")}
        described_heads[head] = {
            "shared": shared,
            "scale": opened.scale,
            "captions": _captions(walk, layer, opened),
        }
    header = {
        "says": story.HEAD_MESSAGES,
        "picture": _KEY,
        "layer": number,
        "heads": described_heads,
    }
    return zlib.compress(one_pass.pack(header, numbers), 9)


def _captions(walk: OfflineTour, layer: LayerDetail, head: HeadDetail) -> list[dict[str, Any]]:
    """The captions for a head, without links to lessons, which aren't part of the file."""
    entry, run = walk.choice.entry, walk.passed.run
    query, key = strongest_tokens(run, layer.layer, head.head)
    context = StoryContext(entry.spec, walk.passed, layer, head, query, key)
    return story.story(context, lambda lesson: "")
