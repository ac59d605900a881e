"""Test Streamlit's settings in `.streamlit/config.toml`, and environment variable validation."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_streamlit_accepts_every_setting():
    """Streamlit only warns about unknown keys and then ignores them."""
    from streamlit import config

    known = set(config.get_config_options())
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert set(_dotted(settings)) - known == set()
    # this setting would distort timings on a page (see the comment in the file)
    assert settings["runner"]["postScriptGC"] is False
    assert settings["server"]["fileWatcherType"] == "none"
    # otherwise Streamlit contacts an external server at every start
    assert settings["browser"]["serverAddress"] == "localhost"


def _dotted(table: dict, prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_text_is_readable(theme):
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    colors = settings["theme"][theme]
    for text in ("textColor", "primaryColor", "linkColor"):
        for background in ("backgroundColor", "secondaryBackgroundColor"):
            assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
    # text on a primary button: Streamlit's white in light, ui/frame/style.css in dark
    on_primary = "#ffffff" if theme == "light" else colors["backgroundColor"]
    assert on_primary in (ROOT / "ui" / "frame" / "style.css").read_text(encoding="utf-8")
    assert contrast(colors["primaryColor"], on_primary) >= 4.5


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio defined by the WCAG (1 to 21)."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


PROGRAMS = {
    "a site": "streamlit run app.py --server.address=127.0.0.1 --server.port=0",
    "several sites": "deploy.sites --port=8501",
    "a large site": "deploy.scale --port=8500",
    "a model server": "uvicorn serving.backend.service:app --port=0",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_invalid_variable_ends_every_program_with_one_line(program: str):
    variable = "ATTENTION_LAB_DOWNLOADS"
    result = subprocess.run(
        [sys.executable, "-m", *PROGRAMS[program].split()],
        cwd=ROOT,
        env={**os.environ, variable: "dis\nabled"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    [line] = result.stderr.splitlines()
    assert line.startswith(f"{variable} is 'dis\\nabled'")
    assert result.returncode == 2
