"""Open pages under Streamlit's AppTest and read what they show."""

import html
import math
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.helpers.drawn_tensors import drawings
from ui.widgets.section_picker import ALL_SECTIONS

ROOT = Path(__file__).resolve().parents[2]
FRAME = str(ROOT / "ui" / "frame" / "frame.py")
VIEWS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "pages").glob("*/*/page.py"))


# What a page sends when its visitor opens it: the keys of `lazy_expander`, without the page's name.
FOLDED = ("link", "paths", "predict", "downloads")


def open_page(site: AppTest, view: str, *, folded: bool = False, **query: str) -> AppTest:
    """Open one page, as a link with these query parameters would: the first run is the page's.

    folded: as a visitor finds it. Otherwise its folded parts were opened before.
    """
    for key, value in query.items():
        site.query_params[key] = value
    for part in () if folded else FOLDED:
        site.session_state[f"{Path(view).parent.name}_{part}_opened"] = True
    # AppTest.switch_page wants a run of the home page before it, because it hashes the file's name
    # where st.navigation hashes the address
    site._page_hash = calc_hash(Path(view).parent.name.replace("_", "-"))
    site.run()
    assert site._finished_page_script_hash == site._page_hash, f"{view} is not among the pages"
    return site


def open_whole_page(site: AppTest, view: str, **query: str) -> AppTest:
    """Open one page with all its parts, which a visitor chooses one by one, below each other."""
    return open_page(site, view, **{f"{Path(view).parent.name}_part": ALL_SECTIONS, **query})


def messages(site: AppTest) -> list[str]:
    """Every warning on the page, as it reads."""
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", element.value) for element in site.warning]


def place(site: AppTest, element: Any) -> tuple[int, ...]:
    """Where an element stands on the page: the numbers of the blocks around it, and its own."""

    def below(block: Any) -> tuple[int, ...] | None:
        for number, child in getattr(block, "children", {}).items():
            if child is element:
                return (number,)
            rest = below(child)
            if rest is not None:
                return (number, *rest)
        return None

    result = below(site._tree)
    assert result is not None
    return result


SIDE = "pages/compare/side_by_side/page.py"
HOME = "pages/start/home/page.py"
GENERATE = "pages/generate/generate/page.py"
MODELS = "pages/weights/models/page.py"


def maps(site: AppTest) -> list[tuple[dict[str, Any], np.ndarray]]:
    """Header and values of each heatmap on the page, as the browser receives them."""
    results = []
    for header, body in drawings(site):
        values = np.frombuffer(body, "<f4")
        results.append((header, values.reshape(header["rows"], header["columns"])))
    return results


def code(site: AppTest) -> list[str]:
    """The pieces of code, formulas and addresses on the page, as a visitor reads them."""
    bodies = [element.proto.body for element in site.get("html")]
    results = [re.findall("<code>(.*)</code>", body, re.DOTALL) for body in bodies]
    return [html.unescape(re.sub("<[^>]*>", "", text)) for texts in results for text in texts]


def plain_tables(site: AppTest) -> list[pd.DataFrame]:
    """The plain tables on the page, as a visitor reads them; a column of numbers holds numbers."""
    bodies = [element.proto.body for element in site.get("html")]
    return [_table(body) for body in bodies if "<table>" in body]


def _table(body: str) -> pd.DataFrame:
    heading, *rows = re.findall("<tr>(.*?)</tr>", body, re.DOTALL)
    names = [html.unescape(name) for name in re.findall("<th[^>]*>(.*?)</th>", heading, re.DOTALL)]
    cells = [re.findall("<td(.*?)>(.*?)</td>", row, re.DOTALL) for row in rows]
    values = [
        [_value("number" in kind, html.unescape(text)) for kind, text in row] for row in cells
    ]
    return pd.DataFrame(values, columns=names)


def _value(is_number: bool, text: str) -> str | float:
    if not is_number:
        return text
    if text == "–":
        return math.nan
    number = number_of(text)
    return int(number) if number.is_integer() and "." not in text else number


def number_of(text: str) -> float:
    """A number as pages write it: "1,234", "−0.50" or "1.2 × 10⁻⁷"."""
    return float(python_numbers(text).replace(",", ""))


def python_numbers(text: str) -> str:
    """A text with its numbers as Python writes them: "1.2 × 10⁻⁷" -> "1.2e-7"."""
    powers = re.compile(" × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
    plain = powers.sub(lambda power: f"e{unicodedata.normalize('NFKC', power[1])}", text)
    return plain.replace("−", "-")


def questions(site: AppTest) -> list:
    return [radio for radio in site.radio if re.search(r"_quiz_\d$", radio.key or "")]
