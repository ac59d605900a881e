"""What a model is given: ids, segments and caches that do not fit are refused with the numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_core import KVCache, Transformer, generate, stream
from attention_core.model.inputs import prompt_ids
from tests.helpers.tiny_models import TINY, build

PROMPT = [3, 1, 4, 1, 5]
VOCABULARY = 83  # of the tiny gpt2

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_a_prompt_may_be_a_tensor(device: str, dtype: torch.dtype):
    model = build("gpt2")
    expected = generate(model, PROMPT, max_new_tokens=4)
    row = torch.tensor(PROMPT, dtype=dtype, device=device)
    for prompt in (row, row[None], tuple(PROMPT)):
        cache = model.new_cache(1, 9)
        assert generate(model, prompt, max_new_tokens=4) == expected
        assert generate(model, prompt, max_new_tokens=4, cache=cache) == expected


def test_numbers_of_numpy_in_a_list_are_numbers():
    assert prompt_ids([np.int64(3), np.int32(1)], 5) == [3, 1]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            torch.ones(2, 5, dtype=torch.int64),
            r"Tensor of shape torch.Size\(\[2, 5\]\) and .*int64",
        ),
        (torch.ones(1, 1, 5, dtype=torch.int64), r"Tensor of shape torch.Size\(\[1, 1, 5\]\)"),
        (torch.tensor(3), r"Tensor of shape torch.Size\(\[\]\)"),
        (torch.ones(5), r"shape torch.Size\(\[5\]\) and dtype torch.float32"),
        (torch.ones(5, dtype=torch.bool), "dtype torch.bool"),
        (np.ones(5, dtype=np.int64), r"ndarray of shape \(5,\) and dtype int64"),
        ("words", "got str"),
        ({3, 4}, "got set"),
        (None, "got NoneType"),
        (7, "got int"),
        ([], "no tokens"),
        (torch.ones(0, dtype=torch.int64), "no tokens"),
        (torch.ones(1, 0, dtype=torch.int64), "no tokens"),
        ([3, 1.5], "a token id must be a whole number, got 1.5"),
        ([3, True], "a token id must be a whole number, got True"),
        ([3, None], "a token id must be a whole number, got None"),
        ([PROMPT], r"a token id must be a whole number, got \[3, 1, 4, 1, 5\]"),
        ([3, -1], "a token id must be at least 0, got -1"),
        ([3, VOCABULARY], "a token id must be at most 82, got 83"),
        (torch.tensor([3, VOCABULARY]), "a token id must be at most 82, got 83"),
    ],
)
def test_other_prompts_are_refused_before_anything_runs(prompt: object, message: str):
    model = build("gpt2")
    with pytest.raises(ValueError, match=message):
        stream(model, prompt, max_new_tokens=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_the_number_of_new_tokens(wrong: object):
    with pytest.raises(ValueError, match="max_new_tokens must be"):
        stream(build("gpt2"), PROMPT, max_new_tokens=wrong)  # type: ignore[arg-type]


IDS = torch.tensor([PROMPT])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (IDS.float(), "token_ids must be a tensor of whole numbers .* got torch.float32"),
        (IDS > 2, "got torch.bool"),
        (PROMPT, "got list"),
        (IDS[0], r"token_ids must be \(batch, tokens\) .* got shape \(5,\)"),
        (IDS[None], r"got shape \(1, 1, 5\)"),
        (IDS[:, :0], r"at least one token, got shape \(1, 0\)"),
        (IDS[:0], r"at least one token, got shape \(0, 5\)"),
        (IDS - 2, "token_ids must be between 0 and 82, got -1 to 3"),
        (IDS + 78, "token_ids must be between 0 and 82, got 79 to 83"),
    ],
)
def test_ids_that_no_model_can_read(ids: Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        build("gpt2")(ids)


def test_ids_of_a_later_pass_are_checked_too():
    model = build("gpt2")
    cache = model.new_cache(1, 9)
    model(IDS, cache=cache)
    with pytest.raises(ValueError, match="between 0 and 82, got 83 to 83"):
        model(torch.tensor([[VOCABULARY]]), cache=cache)
    assert cache.length == len(PROMPT)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_only_the_first_pass_waits():
    model = build("gpt2").to("cuda")
    cache = model.new_cache(1, 9)
    with pytest.raises(ValueError, match="got 79 to 83"):
        model((IDS + 78).to("cuda"))
    ids, one = IDS.to("cuda"), IDS[:, :1].to("cuda")
    model(ids, cache=cache)
    torch.cuda.set_sync_debug_mode("error")
    try:
        model(one, cache=cache)
    finally:
        torch.cuda.set_sync_debug_mode("default")


SEGMENTS = torch.tensor([[0, 0, 1, 1, 1]])


@pytest.mark.parametrize(
    ("name", "segments", "message"),
    [
        ("gpt2", SEGMENTS, "a model without segments"),
        ("bert", SEGMENTS - 1, "segment_ids must be between 0 and 1, got -1 to 0"),
        ("bert", SEGMENTS + 1, "segment_ids must be between 0 and 1, got 1 to 2"),
        ("bert", SEGMENTS.float(), "segment_ids must be a tensor of whole numbers .*float32"),
        ("bert", SEGMENTS > 0, "got torch.bool"),
        ("bert", SEGMENTS[:, 1:], r"segment_ids must be \(1, 5\) like token_ids, got \(1, 4\)"),
        ("bert", SEGMENTS[0], r"segment_ids must be \(batch, tokens\)"),
    ],
)
def test_segments_that_do_not_fit(name: str, segments: Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        build(name)(IDS, segment_ids=segments)


PLACES = torch.arange(5)[None]


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (PLACES - 1, "positions must be between 0 and 40, got -1 to 3"),
        (PLACES + 37, "positions must be between 0 and 40, got 37 to 41"),
        (PLACES.float(), "positions must be a tensor of whole numbers .*float32"),
        (PLACES[:, 1:], r"positions must be \(1, 5\) like token_ids, got \(1, 4\)"),
        (PLACES[0], r"positions must be \(batch, tokens\)"),
        ([[0, 1, 2, 3, 4]], "positions must be a tensor of whole numbers .*list"),
    ],
)
def test_positions_that_do_not_fit(places: Tensor, message: str):
    with pytest.raises(ValueError, match=message):
        build("gpt2")(IDS, positions=places)


def test_positions_of_every_row_are_its_own():
    """Learned ones are looked up; rotary ones act by their distances, which differ by row here."""
    apart = torch.cat((PLACES, PLACES * 3 + 2))
    for name in ("gpt2", "llama", "llama-tied"):
        model = build(name)
        both = model(IDS.expand(2, -1), positions=apart).logits
        for row in range(2):
            alone = model(IDS, positions=apart[row : row + 1]).logits
            torch.testing.assert_close(both[row], alone[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(both[0], model(IDS).logits[0], atol=1e-5, rtol=1e-5)
        assert (both[1] - both[0]).abs().max() > 0.1


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_a_cache_of_another_number_of_layers(n_layers: int):
    model = build("gpt2")
    other = Transformer(replace(TINY["gpt2"], n_layers=n_layers))
    cache = other.new_cache(1, 20)
    message = f"a cache of {n_layers} layers does not fit a model of 3"
    with pytest.raises(ValueError, match=message):
        model(IDS, cache=cache)
    with pytest.raises(ValueError, match=message):
        stream(model, PROMPT, max_new_tokens=2, cache=cache)


@pytest.mark.parametrize("layer", [-1, 3, True])
def test_a_cache_has_no_such_layer(layer: int):
    cache = KVCache(3, 1, 9, key_shape=(2, 4))
    rows = torch.zeros(1, 2, 5, 4)
    with pytest.raises(ValueError, match=f"layer must be .*, got {layer}"):
        cache.update(layer, rows, rows)
