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


# The messages a page sends when its visitor opens `lazy_expander` keys (without the page's name).
FOLDED = ("link", "paths", "predict", "downloads")


def open_page(site: AppTest, view: str, *, folded: bool = False, **query: str) -> AppTest:
    """Open a page by link with these query parameters; its first run is the page's first run.

    folded: leave expanders closed, as a visitor finds them. Otherwise they're opened first.
    """
    for key, value in query.items():
        site.query_params[key] = value
    for part in () if folded else FOLDED:
        site.session_state[f"{Path(view).parent.name}_{part}_opened"] = True
    # AppTest.switch_page would need a run of the home page first, because it hashes the file's
    # name while st.navigation hashes the URL path.
    site._page_hash = calc_hash(Path(view).parent.name.replace("_", "-"))
    site.run()
    assert site._finished_page_script_hash == site._page_hash, f"{view} is not among the pages"
    return site


def open_whole_page(site: AppTest, view: str, **query: str) -> AppTest:
    """Open a page with all its sections below each other; visitors see one at a time."""
    return open_page(site, view, **{f"{Path(view).parent.name}_part": ALL_SECTIONS, **query})


def messages(site: AppTest) -> list[str]:
    """Return the text of every warning on the page."""
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", element.value) for element in site.warning]


def place(site: AppTest, element: Any) -> tuple[int, ...]:
    """Return an element's path on the page: the indices of its parent blocks and its own."""

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
    """Return the header and values of each heatmap on the page, as sent to the browser."""
    results = []
    for header, body in drawings(site):
        values = np.frombuffer(body, "<f4")
        results.append((header, values.reshape(header["rows"], header["columns"])))
    return results


def code(site: AppTest) -> list[str]:
    """Return the code, formulas and addresses on the page, as displayed."""
    bodies = [element.proto.body for element in site.get("html")]
    results = [re.findall("<code>(.*)</code>", body, re.DOTALL) for body in bodies]
    return [html.unescape(re.sub("<[^>]*>", "", text)) for texts in results for text in texts]


def plain_tables(site: AppTest) -> list[pd.DataFrame]:
    """Return the plain tables on the page, as displayed. Numeric columns contain numbers."""
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
    """Parse a number as pages format it: "1,234", "−0.50" or "1.2 × 10⁻⁷"."""
    return float(python_numbers(text).replace(",", ""))


def python_numbers(text: str) -> str:
    """Convert the numbers in a text to Python's format: "1.2 × 10⁻⁷" -> "1.2e-7"."""
    powers = re.compile(" × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
    plain = powers.sub(lambda power: f"e{unicodedata.normalize('NFKC', power[1])}", text)
    return plain.replace("−", "-")


def questions(site: AppTest) -> list:
    return [radio for radio in site.radio if re.search(r"_quiz_\d$", radio.key or "")]
