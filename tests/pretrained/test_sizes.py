"""Memory that a model needs, from the catalog and from its file headers."""

from pathlib import Path

import pytest

from attention_core import Transformer, bert_config, gpt2_config, llama_config
from attention_core.costs.parameters import on_meta_device
from pretrained import sizes
from pretrained.sources import WeightsSource
from pretrained.specs import SPECS, find_spec
from tests.helpers.hollow_models import hollow_model
from training.recipe import recipe

WIDTHS = {"gpt2": 768, "gpt2-medium": 1024, "gpt2-large": 1280, "gpt2-xl": 1600}
OTHERS = {
    "smollm2-135m-instruct": llama_config(
        vocab_size=49152, context_length=8192, d_model=576, n_layers=30, n_heads=9, n_kv_heads=3,
        d_ff=1536,
    ),
    "bert-base-uncased": bert_config(
        vocab_size=30522, context_length=512, d_model=768, n_layers=12, n_heads=12, d_ff=3072
    ),
    "all-minilm-l6-v2": bert_config(
        vocab_size=30522, context_length=512, d_model=384, n_layers=6, n_heads=12, d_ff=1536
    ),
    "gpt2-novels": recipe("gpt2").model,
    "bert-novels": recipe("bert").model,
}  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_catalog_parameter_counts_match_the_core(spec):
    config = OTHERS.get(spec.name) or gpt2_config(
        vocab_size=50257,
        context_length=1024,
        d_model=WIDTHS[spec.name],
        n_layers=spec.n_layers,
        n_heads=spec.n_heads,
        d_ff=4 * WIDTHS[spec.name],
    )
    model = on_meta_device(Transformer, config)
    assert sum(parameter.numel() for parameter in model.parameters()) == spec.n_parameters
    assert sizes.float32_bytes(spec, None) == 4 * spec.n_parameters


def test_size_from_disk(tmp_path: Path):
    folder = hollow_model(tmp_path / "gpt2", 3_000_000)  # 6 MB as stored
    assert sizes.float32_bytes(find_spec("gpt2"), WeightsSource("folder", folder)) == 12_000_000
    assert find_spec("") is None  # also the Hub id of missing models
    assert sizes.float32_bytes(None, WeightsSource("folder", folder)) == 12_000_000
    (folder / "model.safetensors").write_bytes(b"damaged")
    assert sizes.float32_bytes(None, WeightsSource("folder", folder)) == 0
