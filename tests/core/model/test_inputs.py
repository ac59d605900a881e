"""Ids, segments, and caches that don't fit a model raise clear errors."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_core import Transformer, generate, generate_batch, stream
from attention_core.speed.decoder import Decoder
from attention_core.speed.speculative import SpeculativeDecoder
from tests.helpers.decoders import GPT2, random_model
from tests.helpers.tiny_models import TINY, build

PROMPT = [3, 1, 4, 1, 5]
VOCABULARY = 83  # vocabulary size of the tiny GPT-2

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_prompt_can_be_a_tensor(device: str, dtype: torch.dtype):
    model = build("gpt2")
    expected = generate(model, PROMPT, max_new_tokens=4)
    row = torch.tensor(PROMPT, dtype=dtype, device=device)
    for prompt in (row, row[None], tuple(PROMPT)):
        cache = model.new_cache(1, 9)
        assert generate(model, prompt, max_new_tokens=4) == expected
        assert generate(model, prompt, max_new_tokens=4, cache=cache) == expected


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (torch.ones(2, 5, dtype=torch.int64), r"\[2, 5\]"),
        (torch.tensor(3), r"\[\]"),
        (torch.ones(5), r"1\.0"),
        (np.ones((2, 5), dtype=np.int64), r"\(2, 5\)"),
        ("words", "str"),
        (None, "NoneType"),
        ([], "empty"),
        ([3, True], "True"),
        ([3, -1], "-1"),
        ([3, VOCABULARY], "82.*83"),
    ],
)
def test_rejects_invalid_prompts_before_the_first_pass(prompt: object, message: str):
    with pytest.raises(ValueError, match=message):
        stream(build("gpt2"), prompt, max_new_tokens=1)  # type: ignore[arg-type]


IDS = torch.tensor([PROMPT])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (IDS.float(), "token_ids.*float32"),
        (IDS.short(), "int16"),
        (PROMPT, "list"),
        (IDS[0], r"\(5,\)"),
        (IDS[:, :0], r"\(1, 0\)"),
        (IDS - 2, "0 and 82.*-1 to 3"),
        (IDS + 78, "0 and 82.*79 to 83"),
    ],
)
def test_rejects_invalid_ids(ids: Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        build("gpt2")(ids)


def test_checks_ids_of_later_passes():
    model = build("gpt2")
    cache = model.new_cache(1, 9)
    model(IDS, cache=cache)
    with pytest.raises(ValueError, match="between 0 and 82, got 83 to 83"):
        model(torch.tensor([[VOCABULARY]]), cache=cache)
    assert cache.length == len(PROMPT)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_only_the_first_pass_synchronizes_with_the_gpu():
    model = build("gpt2").to("cuda")
    cache = model.new_cache(1, 9)
    with pytest.raises(ValueError, match="got 79 to 83"):
        model((IDS + 78).to("cuda"))
    ids, one = IDS.to("cuda"), IDS[:, :1].to("cuda")
    mask = torch.ones(1, 7, dtype=torch.long, device="cuda")
    model(ids, cache=cache)
    torch.cuda.set_sync_debug_mode("error")
    try:
        model(one, cache=cache)
        model(one, cache=cache, attention_mask=mask)
    finally:
        torch.cuda.set_sync_debug_mode("default")


SEGMENTS = torch.tensor([[0, 0, 1, 1, 1]])


@pytest.mark.parametrize(
    ("name", "segments", "message"),
    [
        ("gpt2", SEGMENTS, "segments"),
        ("bert", SEGMENTS + 1, "segment_ids.*0 and 1.*1 to 2"),
        ("bert", SEGMENTS.float(), "segment_ids.*float32"),
        ("bert", SEGMENTS[:, 1:], r"segment_ids.*\(1, 5\).*\(1, 4\)"),
    ],
)
def test_rejects_invalid_segments(name: str, segments: Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        build(name)(IDS, segment_ids=segments)


POSITIONS = torch.arange(5)[None]


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (POSITIONS - 1, "positions.*0 and 40.*-1 to 3"),
        (POSITIONS + 37, "positions.*0 and 40.*37 to 41"),
        (POSITIONS.float(), "positions.*float32"),
        (POSITIONS[:, 1:], r"positions.*\(1, 5\).*\(1, 4\)"),
    ],
)
def test_rejects_invalid_positions(positions: Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        build("gpt2")(IDS, positions=positions)


def test_each_row_has_its_own_positions():
    """Learned positions are looked up; rotary ones depend on distances in a row."""
    spread_positions = torch.cat((POSITIONS, POSITIONS * 3 + 2))
    for name in ("gpt2", "llama", "llama-tied"):
        model = build(name)
        batch_logits = model(IDS.expand(2, -1), positions=spread_positions).logits
        for row in range(2):
            single = model(IDS, positions=spread_positions[row : row + 1]).logits
            torch.testing.assert_close(batch_logits[row], single[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(batch_logits[0], model(IDS).logits[0], atol=1e-5, rtol=1e-5)
        assert (batch_logits[1] - batch_logits[0]).abs().max() > 0.1


@pytest.mark.parametrize("n_layers", [2, 4])
def test_rejects_a_cache_with_another_number_of_layers(n_layers: int):
    model = build("gpt2")
    cache = Transformer(replace(TINY["gpt2"], n_layers=n_layers)).new_cache(1, 20)
    with pytest.raises(ValueError, match=f"{n_layers} layers.*3"):
        model(IDS, cache=cache)
    with pytest.raises(ValueError, match=f"{n_layers} layers.*3"):
        stream(model, PROMPT, max_new_tokens=2, cache=cache)


MASK = torch.tensor([[0, 0, 1, 1, 1]])


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_mask_can_have_any_integer_dtype(name: str, dtype: torch.dtype):
    model = build(name)
    expected = model(IDS[:, 2:]).hidden
    hidden = model(IDS, attention_mask=MASK.to(dtype)).hidden[:, 2:]
    torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_cached", [0, 3])
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ((MASK - 1) * 1e9, r"float32.*-1000000000\.0"),
        (MASK.half(), "float16"),
        (MASK * 2, "0 to 2"),
        (MASK[:, 1:], r"\(1, 5\).*\(1, 4\)"),
        (MASK[:, None, None], r"\(1, 5\).*\(1, 1, 1, 5\)"),
        (MASK.tolist(), "list"),
    ],
)
def test_rejects_invalid_masks(mask: Tensor, message: str, n_cached: int):
    """Reject additive masks and other values, with and without cached tokens."""
    model = build("gpt2")
    cache = model.new_cache(1, 9)
    if n_cached:
        model(IDS[:, :n_cached], cache=cache)
    with pytest.raises(ValueError, match=message):
        model(IDS[:, n_cached:], cache=cache, attention_mask=mask)
    assert cache.length == n_cached


@pytest.mark.parametrize(
    "name", ["token_ids", "attention_mask", "segment_ids", "positions", "cache"]
)
@pytest.mark.parametrize(("model_on", "other"), [("cpu", "meta"), ("meta", "cpu")])
def test_rejects_inputs_on_another_device(name: str, model_on: str, other: str):
    model = build("gpt2" if name == "cache" else "bert").to(model_on)
    inputs = {
        "token_ids": IDS,
        "attention_mask": MASK,
        "segment_ids": SEGMENTS,
        "positions": POSITIONS,
    }
    message = f"{name} is on {other}, but the model is on {model_on}"
    if name == "cache":
        cache = build("gpt2").to(other).new_cache(1, 9)
        with pytest.raises(ValueError, match=message):
            model(IDS.to(model_on), cache=cache)
        with pytest.raises(ValueError, match=message):
            stream(model, PROMPT, max_new_tokens=2, cache=cache)
        return
    inputs = {key: value.to(other if key == name else model_on) for key, value in inputs.items()}
    ids = inputs.pop("token_ids")
    with pytest.raises(ValueError, match=message):
        model(ids, **inputs)


def _generate_with_stream(model: Transformer, stop_ids: object) -> list[int]:
    return generate(model, PROMPT, max_new_tokens=9, stop_ids=stop_ids)  # type: ignore[arg-type]


def _generate_with_batch(model: Transformer, stop_ids: object) -> list[int]:
    [row] = generate_batch(model, [PROMPT], max_new_tokens=9, stop_ids=stop_ids)  # type: ignore[arg-type]
    return row


def _generate_with_decoder(model: Transformer, stop_ids: object) -> list[int]:
    return Decoder(model, 20).generate(PROMPT, max_new_tokens=9, stop_ids=stop_ids)  # type: ignore[arg-type]


def _generate_with_drafts(model: Transformer, stop_ids: object) -> list[int]:
    decoder = SpeculativeDecoder(model, model, 20)
    return decoder.generate(PROMPT, max_new_tokens=9, stop_ids=stop_ids)  # type: ignore[arg-type]


GENERATORS = [
    _generate_with_stream,
    _generate_with_batch,
    _generate_with_decoder,
    _generate_with_drafts,
]


@pytest.mark.parametrize("generate_with", GENERATORS)
@pytest.mark.parametrize("form", [list, frozenset, torch.tensor, np.array, np.int16])
def test_stop_ids_can_be_any_collection_of_integers(generate_with: Callable, form: Callable):
    model = random_model(GPT2)  # generates more than one token
    whole = generate(model, PROMPT, max_new_tokens=9)
    stop = next(token_id for token_id in whole[2:] if token_id not in whole[:2])
    ids = [form(stop)] if form is np.int16 else form([stop, VOCABULARY])
    assert generate_with(model, ids) == whole[: whole.index(stop) + 1]
    assert generate_with(model, ()) == generate_with(model, torch.tensor([])) == whole


@pytest.mark.parametrize("generate_with", GENERATORS)
@pytest.mark.parametrize(
    ("stop_ids", "message"),
    [
        (5, "stop_ids.*5"),
        (None, "None"),
        ("5", "'5'"),
        (torch.tensor([[5]]), r"\[5\]"),
        ([5, -1], "-1"),
        ([True], "True"),
        (iter([5]), "stop_ids"),
    ],
)
def test_rejects_invalid_stop_ids(generate_with: Callable, stop_ids: object, message: str):
    with pytest.raises(ValueError, match=message):
        generate_with(random_model(GPT2), stop_ids)
