"""Test pages exported as one HTML file: their script and the colors of both themes."""

import pytest
import streamlit as st

from ui.export import html_file


def test_component_exports_become_constants():
    js = 'const text = "</SCRIPT><!-- <script>";\nexport default function () { return text; }\n'
    body = html_file.wrap_exports(js)
    assert "const exported = function () { return text; }" in body
    assert "<" not in body


@pytest.mark.parametrize(
    "js",
    [
        "function a() {}",
        "export default 1\nexport const a = 1",
        "import a from 'b'\nexport default a",
        "export { a as default }",
    ],
)
def test_unsupported_script_is_rejected(js: str):
    with pytest.raises(ValueError, match="one default export and no imports"):
        html_file.wrap_exports(js)


def test_page_has_the_colors_of_both_themes():
    light, dark = html_file.themes(st.get_option).split("prefers-color-scheme: dark")
    assert "--st-background-color: #ffffff;" in light
    assert "--st-background-color: #0b0e12;" in dark
