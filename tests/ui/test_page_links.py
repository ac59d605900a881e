"""Test that page links survive Streamlit's handling of addresses with the same ending."""

from types import SimpleNamespace

import pytest
from streamlit.runtime.context_util import maybe_add_page_path, maybe_trim_page_path

from serving import urls
from ui.frame import sections

ADDRESSES = [urls.page_path(folder) for folder in sections.TITLES]


@pytest.mark.parametrize("base", ["http://127.0.0.1:8501", "https://lab.example.org/a/generated-"])
@pytest.mark.parametrize("page", ADDRESSES)
def test_page_address_survives_streamlits_trimming(base: str, page: str):
    manager = SimpleNamespace(
        current_page_script_hash=page,
        get_pages=lambda: {name: {"url_pathname": name} for name in ADDRESSES},
    )
    address = f"{base}/{page}"
    message = maybe_add_page_path(maybe_trim_page_path(address, manager), manager)
    assert sections.page_url(f"{message}?a=b/c") == address
