"""Models with overflowing or invalid outputs give numbers or a clear message."""

import re
from itertools import product
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers import hostile_models
from tests.helpers.apptest import SIDE, VIEWS, messages, open_whole_page

# Pages that don't run a model from a folder.
WITHOUT_A_MODEL = {
    "against_pytorch", "calculator", "glossary", "ladder", "masking", "two_networks",
    "watch_heads_form", "why_attention",
}  # fmt: skip
PAGES = [view for view in VIEWS if Path(view).parent.name not in WITHOUT_A_MODEL]
# Every page runs these models. The others fail in the same code, so a few pages cover them.
EVERYWHERE = ("gpt2-overflow-after-the-first", "gpt2-all-zero", "gpt2-padded-vocabulary")
OTHERS = ("gpt2-overflow-in-scores", "bert-overflow-in-logits", "bert-all-zero", "llama-one-word")
HEADS, ABLATE = "pages/compare/heads/page.py", "pages/compare/ablate/page.py"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder for each name, created when a test requests it."""
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture
def folder(request: pytest.FixtureRequest, folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only model on this machine, so every page shows it by default."""
    models = folders / request.param
    if not models.exists():
        hostile_models.build(models, request.param)
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(models))
    return models / request.param


def not_a_number(site: AppTest) -> list[str]:
    """NaN in the page's text or drawings, except in masked cells of a map."""
    texts = [str(element.value) for kind in ("text", "markdown") for element in site.get(kind)]
    headers = [
        element.proto.bytes[:200_000].decode("utf-8", "replace")
        for element in site.get("bidi_component")
        if element.proto.WhichOneof("data") == "bytes"
    ]
    results = [text for text in texts if re.search(r"(?<![\w.])-?(nan|inf)(?!\w)", text)]
    return results + [text[:200] for text in headers if re.search(r"[\[:, ](NaN|-?Infinity)", text)]


@pytest.mark.parametrize(
    ("view", "folder"),
    [*product(PAGES, EVERYWHERE), *product((HEADS, ABLATE), OTHERS)],
    indirect=["folder"],
)
def test_page_shows_numbers_or_a_message(site: AppTest, view: str, folder: Path):
    open_whole_page(site, view)
    assert not site.exception, [element.message for element in site.exception]
    assert not_a_number(site) == []
    assert (
        site.get("bidi_component")
        or site.get("vega_lite_chart")
        or messages(site)
        or (view.split("/")[-2] in {"generate", "models", "timing", "exercise_sheet"})
    )


@pytest.mark.parametrize("folder", ["gpt2-padded-vocabulary"], indirect=True)
def test_padded_vocabulary(site: AppTest, folder: Path):
    open_whole_page(site, "pages/start/one_pass/page.py")
    assert not messages(site)
    assert site.get("bidi_component")


@pytest.mark.parametrize("folder", ["gpt2-overflow-at-five"], indirect=True)
def test_message_names_the_first_invalid_position(site: AppTest, folder: Path):
    open_whole_page(site, HEADS)
    [message] = messages(site)
    assert "position 5 " in message


@pytest.mark.parametrize("folder", hostile_models.NOT_FOR_TRANSFORMERS, indirect=True)
def test_reference_model_that_transformers_rejects(site: AppTest, folder: Path):
    open_whole_page(site, SIDE, side_by_side_reference="true")
    assert not site.exception
    [message] = messages(site)
    assert "transformers" in message
    assert str(folder) not in message


@pytest.mark.parametrize("folder", ["gpt2-usual", *hostile_models.FILES], indirect=True)
def test_reference_model_that_transformers_accepts(site: AppTest, folder: Path):
    open_whole_page(site, SIDE, side_by_side_reference="true")
    assert not messages(site)
    assert any("GPT2LMHeadModel" in element.value for element in site.text)
