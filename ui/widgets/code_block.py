"""Code, formulas and addresses as they are, with a button that copies them (`copy.js`).

Streamlit's own `st.code` has every browser load 1.5 MB of scripts before it shows the first line.
"""

from __future__ import annotations

from html import escape

import streamlit as st
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from serving.cache import cached

_TOKENS = HtmlFormatter(nowrap=True)  # the text escaped, each token in an element of its class
_BUTTON = '<button type="button" aria-label="Copy" title="Copy"></button>'


def python(code: str) -> None:
    """Show Python, coloured by `style.css`. Long lines wrap."""
    _show(_coloured(code))


def plain(text: str) -> None:
    """Show any text, a visitor's too, letter by letter. Long lines wrap."""
    _show(escape(text))


@cached(key=lambda code: code)
def _coloured(code: str) -> str:
    """HTML of Python, kept: it takes 0.05 ms a line, and a page runs again at every click."""
    return highlight(code, PythonLexer(stripnl=False), _TOKENS).rstrip("\n")


def _show(escaped: str) -> None:
    st.html(f'<div class="code">{_BUTTON}<pre><code>{escaped}</code></pre></div>')
