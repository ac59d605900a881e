"""The Compare pages on a model with one layer and one head, and very short texts."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import VIEWS, open_whole_page

NAME = "one-head"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder that contains a random GPT-2 with one head."""
    import transformers

    folder = tmp_path_factory.mktemp("models")
    config = transformers.GPT2Config(
        vocab_size=50257, n_positions=24, n_embd=8, n_layer=1, n_head=1
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / NAME)
    return folder


@pytest.mark.parametrize("text", ["a", "it saw it"])
@pytest.mark.parametrize("view", [view for view in VIEWS if view.startswith("pages/compare/")])
def test_single_head_model(
    view: str, text: str, folder: Path, site: AppTest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(folder))
    page = Path(view).parent.name
    text_key = f"{page}_prompt" if page == "generated_tokens" else f"{page}_text"
    model_key = f"{page}_a_model" if page == "side_by_side" else f"{page}_model"
    open_whole_page(site, view, **{text_key: text, model_key: NAME})
    assert not site.exception
    assert site.session_state[model_key] == NAME
