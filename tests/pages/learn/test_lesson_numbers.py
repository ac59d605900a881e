"""Lecture numbers that no page test reads, through the pages' functions.

Most blocks are checked in the test of the page that shows them. The last test here makes sure that
every block is read by some test.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from attention_core import KVCache, LatentConfig, Transformer, TransformerConfig
from pages.learn.block.original_layers import ENCODER_2017
from pages.learn.block.steps import layer_2017
from serving.race import cache_size
from tests.helpers.lectures import LECTURE_NUMBERS
from ui.widgets import controls

HERE = Path(__file__).parent
NUMBERS: dict[str, Any] = LECTURE_NUMBERS
# Notes about the file, and timings from another machine. benchmarks/decode.py uses their ratio as
# its target.
NOT_NUMBERS = {"note", "003_generation_timing"}


@pytest.mark.parametrize(
    "example", NUMBERS["003_kv_cache_size"]["examples"], ids=lambda e: e["name"]
)
def test_lecture_cache_sizes(example: dict[str, Any]):
    """Build caches of these sizes on the meta device and measure them."""
    heads = (example.get("n_heads", 1), example.get("head_dim", example.get("d_model")))
    cache = KVCache(
        example["n_layers"],
        example["batch"],
        example["seq_len"],
        key_shape=heads,
        dtype=torch.float16,
        device="meta",
    )
    full = torch.empty(
        example["batch"], heads[0], example["seq_len"], heads[1], dtype=torch.float16, device="meta"
    )
    for layer in range(example["n_layers"]):
        cache.update(layer, full, full)
    config = TransformerConfig(
        vocab_size=1,
        context_length=1,
        d_model=1,
        d_ff=1,
        n_layers=example["n_layers"],
        n_heads=heads[0],
        head_size=heads[1],
    )
    size = cache_size(cache, config)
    assert size.measured == size.formula == example["bytes"]
    assert f"{example['bytes'] / 1e9:.0f} GB" == example["printed"]


@pytest.mark.parametrize(
    "parts",
    [
        {"n_kv_heads": 3},
        {"n_kv_heads": 3, "window": 5},
        {"latent": LatentConfig(kv_rank=11, nope_head_size=4, rope_head_size=2, v_head_size=7)},
    ],
)
def test_cache_size_with_shared_heads_windows_and_latents(parts: dict[str, Any]):
    config = TransformerConfig(
        vocab_size=13,
        context_length=40,
        d_model=24,
        d_ff=8,
        n_layers=2,
        n_heads=6,
        positions="rotary",
        **parts,
    )
    model = Transformer(config).eval()
    cache = model.new_cache(1, 40)
    for _ in range(9):
        with torch.inference_mode():
            model(torch.tensor([[1]]), cache=cache)
    row = 11 + 2 if config.latent else 3 * 4 * 2
    expected = 2 * row * min(9, config.window or 9) * 4
    size = cache_size(cache, config)
    assert size.measured == size.formula == expected


def test_course_sentences_are_available():
    offered = controls.SENTENCES
    course = NUMBERS["003_sentences"]
    assert {course["two_heads"], course["ambiguous"], NUMBERS["004_sentence"]["text"]} <= {*offered}


def test_2017_layer_has_the_lecture_sizes():
    encoder = NUMBERS["004_sentence"]["encoder"]
    text = NUMBERS["004_sentence"]["text"]
    n, d_ff = len(text.split()), 2048
    layer = layer_2017(ENCODER_2017, text, encoder["heads"], d_ff)
    sizes = [step.values.shape for step in layer.steps]
    assert (layer.n_heads, layer.head_size) == (encoder["heads"], encoder["head_dim"])
    assert (encoder["heads"], n, encoder["head_dim"]) in sizes
    # 512 -> hidden -> 512, so the output has the width of the embedding again.
    places = [sizes.index(size) for size in ((n, encoder["d_model"]), (n, d_ff))]
    assert places == sorted(places)
    assert sizes[-1] == (n, encoder["d_model"])


def test_two_2017_heads_are_concatenated():
    layer = layer_2017(ENCODER_2017, "one two three", 2, 2048)
    assert NUMBERS["004_sentence"]["two_head_example"].startswith("512 -> 256 per head")
    assert (layer.n_heads, layer.head_size) == (2, 256)


def test_every_block_is_covered_by_a_test():
    texts = [file.read_text(encoding="utf-8") for file in HERE.rglob("test_*.py")]
    missing = [name for name in NUMBERS if not any(name in text for text in texts)]
    assert [name for name in missing if name not in NOT_NUMBERS] == []
