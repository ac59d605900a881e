"""Padding on either side doesn't change the result of a row."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2Config

from attention_core import Transformer, TransformerConfig
from attention_core.positions.scaling import DynamicScaling
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference
from tests.helpers.attention_variants import LATENT, enlarged_model
from tests.helpers.tiny_models import TINY, build

CONFIGS: dict[str, TransformerConfig] = {
    "gpt2": TINY["gpt2"],
    "llama": TINY["llama"],
    "one key head": TINY["llama-tied"],
    "gpt2, a window": replace(TINY["gpt2"], window=3),
    "llama, a window": replace(TINY["llama"], window=5),
    "dynamic scaling": replace(TINY["llama"], rope_scaling=DynamicScaling(4.0, 9)),
    "latent": LATENT["expanded"],
    "latent, absorbed, a window": replace(LATENT["absorbed"], window=4),
}
LENGTH = 17
LEFT, RIGHT = (0, 4, 11, 16), (0, 6, 2, 0)  # padding columns per row
NONE = (0, 0, 0, 0)
CHUNKS = {"single chunk": [17], "one by one": [1] * 17, "uneven": [5, 1, 1, 7, 3]}


def padded_batch(
    vocab_size: int, right: tuple[int, ...] = RIGHT
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids (4, 17) with some padding, and their mask."""
    ids = torch.randint(vocab_size, (4, LENGTH), generator=torch.Generator().manual_seed(2))
    columns = torch.arange(LENGTH)
    first, last = torch.tensor(LEFT)[:, None], LENGTH - torch.tensor(right)[:, None]
    return ids, ((columns >= first) & (columns < last)).long()


def check_rows(
    model: Transformer, hidden: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor
) -> None:
    for row, real in enumerate(mask.bool()):
        expected = model(ids[row : row + 1, real]).hidden[0]
        assert_close(hidden[row, real], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("name", [*CONFIGS, "bert"])
def test_padded_row_equals_the_row_on_its_own(name: str, dtype: torch.dtype):
    model = enlarged_model(TINY["bert"] if name == "bert" else CONFIGS[name])
    # dynamic scaling depends on the number of columns, which includes right padding
    ids, mask = padded_batch(model.config.vocab_size, NONE if name == "dynamic scaling" else RIGHT)
    check_rows(model, model(ids, attention_mask=mask.to(dtype)).hidden, ids, mask)


@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("name", sorted({*CONFIGS} - {"dynamic scaling"}))
def test_padded_chunks_with_a_cache(name: str, sizes: list[int]):
    """Some first chunks are all padding. Dynamic scaling depends on chunks, so skip it."""
    model = enlarged_model(CONFIGS[name])
    ids, mask = padded_batch(model.config.vocab_size)
    cache, parts = model.new_cache(4, LENGTH), []
    for chunk in ids.split(sizes, dim=1):
        end = cache.length + chunk.shape[1]
        parts.append(model(chunk, cache=cache, attention_mask=mask[:, :end]).hidden)
    check_rows(model, torch.cat(parts, dim=1), ids, mask)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_row_with_only_padding_attends_to_nothing(name: str):
    model = build(name)
    ids, mask = padded_batch(79)
    mask[1] = 0
    output = model(ids, attention_mask=mask, record=True)
    assert output.hidden.isfinite().all()
    for record in output.records:
        assert not record.weights[1].any()
        assert not record.context[1].any()


def test_equals_transformers_with_the_same_positions():
    """Without explicit positions, transformers counts from the first column."""
    sizes = dict(vocab_size=79, n_positions=23, n_embd=28, n_layer=3, n_head=4, n_inner=50)
    reference = random_gpt2(GPT2Config(**sizes, initializer_range=0.06))
    ids, mask = padded_batch(79)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    expected = reference(ids, attention_mask=mask, position_ids=positions).logits
    ours = core_from_reference(reference)(ids, attention_mask=mask).logits
    real = mask.bool()
    assert_close(ours[real], expected[real], atol=1e-5, rtol=1e-5)
