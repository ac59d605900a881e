"""Every page under AppTest: numbers, invalid input, links, missing weights."""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from streamlit.testing.v1 import AppTest

import pretrained
from pretrained import sources
from pretrained.sources import WeightsSource
from serving import models, runs
from serving.limits import MAX_TEXT_CHARACTERS
from tests.helpers import glossary
from tests.helpers.apptest import (
    FRAME,
    GENERATE,
    HOME,
    MODELS,
    ROOT,
    SIDE,
    VIEWS,
    messages,
    open_page,
    open_whole_page,
)
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_BERT, FIRST_GPT2
from ui.widgets.messages import MAX_CHARACTERS, escape_markdown

LINKED = ("slider", "select_slider", "number_input", "selectbox", "toggle", "radio", "text_input",
          "text_area", "button_group")  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_opens_and_marks_glossary_terms(site: AppTest, view: str):
    """`conftest.py` checks the drawings."""
    open_whole_page(site, view)
    assert not site.exception
    assert not messages(site)
    assert site.title[0].value
    texts = glossary.prose(site)
    by_words = [glossary.used_terms(text) for text in texts]
    assert glossary.marked_terms(texts) == by_words
    if "/glossary/" not in view:
        assert set.union(*by_words)


# In addition to the lessons.
WITHOUT_A_MODEL = {"pages/kv_cache/calculator/page.py", "pages/teaching/glossary/page.py"}


@pytest.mark.parametrize(
    "view", [view for view in VIEWS if "/learn/" not in view and view not in WITHOUT_A_MODEL]
)
@pytest.mark.usefixtures("no_weights")
def test_every_page_without_weights_explains_how_to_get_them(site: AppTest, view: str):
    open_whole_page(site, view)
    assert not site.exception
    assert any("make run" in message for message in messages(site))


@pytest.mark.parametrize(("view", "key"), [(HOME, "home_text"), (SIDE, "side_by_side_text")])
def test_hostile_and_empty_text(site: AppTest, view: str, key: str):
    open_page(site, view)
    for text in (
        "",
        "   \n\t ",
        "<img src=x onerror=alert(1)> **bold** ![i](http://example.invalid/x.png)",
        "naïve 👩‍👧 日本語 \x00 \u202e rtl",
        "a" * MAX_TEXT_CHARACTERS,
        "[MASK] <|im_end|> [SEP]",
    ):
        site.text_input(key).set_value(text).run()
        assert not site.exception
        assert site.get("bidi_component") or messages(site)
        for element in site.markdown:
            assert "onerror" not in element.value
            assert "example.invalid" not in element.value


@pytest.mark.parametrize("value", ["1e400", "-1", "../../etc/<b>passwd</b>"])
def test_invalid_link_values(site: AppTest, value: str):
    """All parameters of one page. `test_malformed_links` covers the other pages."""
    usual = open_whole_page(AppTest.from_file(FRAME, default_timeout=60), SIDE)
    keys = [widget.key for kind in LINKED for widget in usual.get(kind) if widget.key]
    linked = [key for key in keys if not key.endswith("_part")]
    open_whole_page(site, SIDE, **dict.fromkeys(linked, value))
    assert not site.exception
    assert site.toast
    assert site.title[0].value == usual.title[0].value


def test_runs_are_shared_and_read_only():
    first = runs.run(ENCODER, "shared")
    assert runs.run(ENCODER, "shared") is first
    with pytest.raises(ValueError, match="read-only"):
        first.weights[0, 0, 0, 0] = 1


def test_models_page_rejects_a_hostile_hub_id(site: AppTest):
    open_page(site, MODELS)
    site.selectbox("models_download").set_value("Another model (enter its Hub ID)").run()
    site.text_input("models_hub_id").set_value("![x](http://example.invalid/x.png)").run()
    site.button("models_start").click().run()
    assert not site.exception
    message = site.warning[0].value
    assert "Hub id" in message
    assert "![x](" not in message
    assert "://" not in message


def test_path_in_a_link_opens_no_file(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    folder = sources.TRAINED_HERE / FIRST_GPT2
    monkeypatch.chdir(sources.TRAINED_HERE.parent)
    path = f"checkpoints/{FIRST_GPT2}"
    # The path is loadable, so only the link's check can stop it.
    assert sources.folder_at(path) == sources.folder_at(folder) == folder
    names = [entry.spec.name for entry in pretrained.catalog()]
    for text in (path, str(folder), f"./{path}"):
        open_page(site, SIDE, side_by_side_a_model=text)
        assert not site.exception
        assert site.selectbox("side_by_side_a_model").value in names
        with pytest.raises(ValueError, match="ATTENTION_LAB_MODELS"):
            models.get(text)


def test_messages_are_text():
    hostile = "![x](http://a.example/x.png) **b** `c` $d$ :red[e] <f> www.a.example\n# g"
    escaped = escape_markdown(hostile)
    assert re.search(r"(?<!\\)[!*`$<\[\]()#:]", escaped) is None
    assert "\n" not in escaped
    assert "http\\:\u200b" in escaped  # The address is broken up so that it doesn't become a link.
    assert "www\u200b" in escaped
    assert len(escape_markdown("x" * 10_000)) == MAX_CHARACTERS


def test_opening_pages_does_not_import_torch():
    """A page's first view, including the code it shows, must not wait for torch."""
    code = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"for view in ({GENERATE!r}, {MODELS!r}):\n"
        "    site = AppTest.from_file(view, default_timeout=60).run()\n"
        "    assert site.title[0].value and not site.exception\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "ATTENTION_LAB_WARMUP": "off", "HF_HUB_CACHE": "/nonexistent"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_page_looks_up_each_model_at_most_twice(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    open_page(site, SIDE)
    looks: Counter[str] = Counter()

    def find(name: str) -> WeightsSource | None:
        looks[name] += 1
        return sources_find(name)

    sources_find = sources.find
    for module in (sources, pretrained):
        monkeypatch.setattr(module, "find", find)
    site.run()
    assert not site.exception
    # Once for the list of all models, and once for the location of the selected one.
    assert max(looks.values(), default=0) <= 2


def test_failing_model_does_not_stop_the_warm_up(
    monkeypatch: pytest.MonkeyPatch,
):
    requests = []

    def get(name: str) -> None:
        requests.append(name)
        raise OSError("damaged")

    monkeypatch.setattr(models, "get", get)
    models.load_preferred()
    assert requests == [ENCODER, DECODER, FIRST_BERT, FIRST_GPT2]


def test_models_page_without_a_network(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    # A closed local port refuses immediately, like a missing network.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    open_page(site, MODELS)
    site.button("models_start").click().run()
    assert not site.exception
    assert any("can't reach" in m for m in messages(site))


def test_downloads_can_be_disabled(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTENTION_LAB_DOWNLOADS", "off")
    open_page(site, MODELS)
    assert any("turned off" in element.value for element in site.info)
    assert not site.button
