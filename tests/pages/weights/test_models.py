"""The Models page: whether a model loads, and user text that stays plain text."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from serving import models
from tests.helpers.apptest import MODELS, messages, open_page
from tests.helpers.hollow_models import hollow_model

pytestmark = pytest.mark.usefixtures("bundled_weights")

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128_256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
}


def ask_about(site: AppTest, text: str) -> AppTest:
    open_page(site, MODELS)
    site.text_area("models_question").set_value(text).run()
    assert not site.exception
    return site


def test_supported_configuration(site: AppTest):
    ask_about(site, json.dumps(LLAMA))
    assert len(site.success) == 1
    # 16 layers with four attention matrices, three MLP matrices and two norms, then the
    # final norm and the embedding, which is also the output matrix (Llama 3.2 1B).
    layer = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048
    assert f"{16 * layer + 2048 + 128_256 * 2048:,} parameters" in site.text[-1].value


def test_unsupported_option_is_named(site: AppTest):
    ask_about(site, json.dumps(LLAMA | {"rope_scaling": {"rope_type": "longrope"}}))
    assert not site.success
    assert any("rope_type='longrope'" in message for message in messages(site))


def test_unknown_name_and_hostile_text(site: AppTest):
    ask_about(site, "somebody/something")
    assert any("Paste the text of its config.json" in message for message in messages(site))
    hostile = "<img src=x onerror=alert(1)> **bold** ![i](http://example.invalid/x.png)"
    ask_about(site, hostile)
    assert messages(site)
    for element in [*site.markdown, *site.warning]:
        assert "![i]" not in element.value
        assert "**bold**" not in element.value
    assert site.text_area("models_question").value == hostile


@pytest.fixture
def model_over_budget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A 2 GB float32 model on a machine where models may use 1.2 GB."""
    hollow_model(tmp_path / "large", 500_000_000)
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    monkeypatch.setattr(models, "MODEL_BUDGET_BYTES", 1_215_000_000)


@pytest.mark.usefixtures("model_over_budget")
def test_too_large_model_shows_both_sizes(site: AppTest):
    open_page(site, MODELS)
    assert not site.exception
    [message] = messages(site)
    assert "large takes 2.00 GB" in message
    assert "1.22 GB" in message
    assert site.dataframe[0].value.set_index("name")["GB"]["large"] == 2.0
    too_large = [
        label for label in site.selectbox("models_download").options if "too large" in label
    ]
    assert any("1.52 GB" in label for label in too_large)
    assert not any("0.55 GB" in label for label in too_large)
    # Models that fit come first.
    assert models.preferred("decoder") == "smollm2-135m-instruct"


@pytest.mark.usefixtures("model_over_budget")
def test_page_with_a_too_large_model_shows_message(site: AppTest):
    open_page(site, "pages/compare/heads/page.py", heads_model="large")
    assert not site.exception
    assert any("large takes 2.00 GB" in message for message in messages(site))
    ask_about(site, json.dumps(LLAMA))  # 4.94 GB.
    assert not site.success
    assert any(message.startswith("It takes 4.94 GB of memory") for message in messages(site))
