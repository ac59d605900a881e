"""JavaScript that the drawn components share: colours, packed data, saved pictures.

A component of Streamlit is given its JavaScript as one text and may import no file of its own, so
the shared functions are put before the component's text:

    js = drawing.script("colours", "data", "save") + _asset("heatmap.js")

The files hold plain functions, without `export`; the names they define are global to that one
component, and a component must not define them again.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def script(*names: str) -> str:
    """The text of `ui/drawing/<name>.js` for each name, in the order given.

    Raises: ValueError for a name without a file; the message lists those there are.
    """
    there = {file.stem: file for file in sorted(_FOLDER.glob("*.js"))}
    unknown = [name for name in names if name not in there]
    if unknown:
        raise ValueError(f"no script {', '.join(unknown)} in ui/drawing; there are {list(there)}")
    return "".join(there[name].read_text(encoding="utf-8") + "\n" for name in names)
