"""Test what all drawings share: their script, data format and palette."""

import json
import re
import tomllib
from pathlib import Path
from typing import get_args

import numpy as np

from ui.canvas import (
    component,
    tensors,
)
from ui.canvas.component import pack, with_caption
from ui.charts import style

FOLDER = Path(component.__file__).parent


def test_numbers_are_packed_by_type_and_aligned():
    values, cells = np.array([[0.1, 2], [3, np.nan]]), np.array([7, -1, 2])
    for title in ("", "a", "ab", "é", "😀"):
        data = pack({"title": title}, values, cells)
        length = int.from_bytes(data[:4], "little")
        assert length % 4 == 0
        assert json.loads(data[4 : 4 + length]) == {"title": title}
        np.testing.assert_array_equal(
            np.frombuffer(data, "<f4", 4, 4 + length).reshape(2, 2), values.astype("f4")
        )
        np.testing.assert_array_equal(np.frombuffer(data, "<i4", 3, 4 + length + 16), cells)
        assert len(data) == 4 + length + 4 * (4 + 3)


def test_header_describes_the_picture():
    facts = {"model": "M", "name": "m", "sentence": "é <b>"}
    values = np.arange(3.0)
    for title in ("", "a", "ab", "abc"):
        plain = pack({"title": title}, values)
        data = with_caption(plain, facts)
        length = int.from_bytes(data[:4], "little")
        assert length % 4 == 0
        assert json.loads(data[4 : 4 + length]) == {"about": facts, "title": title}
        assert data[4 + length :] == values.astype("<f4").tobytes()
        assert with_caption(plain, {}) == plain
    assert json.loads(with_caption(b'{"title": "t"}', facts)) == {"about": facts, "title": "t"}


def stops(text: str, name: str) -> list[str]:
    """Return the colors of a scale in colours.js, as #rrggbb."""
    block = re.search(rf"const {name} = \[(.*?)\n\];", text, re.DOTALL)
    assert block is not None
    numbers = re.findall(r"\[(\d+), (\d+), (\d+)\]", block[1])
    return ["#" + bytes(map(int, colour)).hex() for colour in numbers]


def test_quantity_has_one_color_in_drawings_and_charts():
    text = (FOLDER / "shared" / "colours.js").read_text(encoding="utf-8")
    assert stops(text, "STOPS") == style.WEIGHTS
    assert stops(text, "DIVERGING_STOPS") == style.SIGNED
    assert stops(text, "DIVERGING_ON_DARK") == style.SIGNED_ON_DARK
    block = re.search(r"const QUANTITIES = \{(.*?)\n\};", text, re.DOTALL)
    assert block is not None
    hues = dict(re.findall(r'([\w-]+)"?: "(#\w{6})"', block[1]))
    assert set(hues) == set(get_args(tensors.Quantity)) - {"", "weights", "scores"}
    for name, hue in hues.items():
        assert hue == getattr(style, name.upper().replace("-", "_")).lower()
    block = re.search(r"const HEAD_COLOURS = \[(.*?)\];", text, re.DOTALL)
    assert block is not None
    assert re.findall(r"#\w{6}", block[1]) == style.HEADS


def test_drawings_charts_and_theme_share_a_palette():
    text = (FOLDER / "shared" / "colours.js").read_text(encoding="utf-8")
    block = text[text.index("const OKABE_ITO") :]
    drawn = dict(re.findall(r'(\w+): "(#\w{6})"', block[: block.index("}")]))
    assert len(drawn) == 7
    for name in ("blue", "vermillion", "green", "purple"):
        assert drawn[name] == getattr(style, name.upper()).lower()
    root = FOLDER.parents[1]
    theme = tomllib.loads((root / ".streamlit" / "config.toml").read_text(encoding="utf-8"))[
        "theme"
    ]
    colours = [colour.lower() for colour in theme["chartCategoricalColors"]]
    assert set(drawn.values()) <= set(colours)
