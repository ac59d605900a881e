"""The models trained on novels load in transformers with default settings."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoTokenizer, BertForMaskedLM, GPT2LMHeadModel

import pretrained
from pretrained.masked_word import masked_word_head
from pretrained.sources import TRAINED_HERE
from tests.helpers.bundled_models import FIRST_BERT, FIRST_GPT2, bundled_model
from tests.helpers.texts import TEXTS

CLASSES = {FIRST_GPT2: GPT2LMHeadModel, FIRST_BERT: BertForMaskedLM}
END = "<|endoftext|>"  # transformers reads this as a special token; our tokenizers read it as text
MASKED = ["a", "She took her [MASK] and went", "[MASK][MASK] x [MASK]", " [MASK]  [MASK]\n[MASK]"]
HOSTILE = [
    "[UNK] [CLS] [SEP] [PAD] [unused1]",
    "🤗" * 90,
    "zz\u0000\ufffd\u00a0",
    "Ġthe Ċ",
    "\ud7ff",
]


@pytest.fixture(params=CLASSES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("text", [*(t.replace(END, "") for t in TEXTS), *MASKED, *HOSTILE])
def test_text_gives_the_same_tokens(name: str, text: str):
    tokenizer = AutoTokenizer.from_pretrained(TRAINED_HERE / name)
    ids = tokenizer(text).input_ids
    # transformers reads a typed [MASK] as the special token, too
    if name == FIRST_GPT2 and "[MASK]" in text:
        ids = tokenizer(text, split_special_tokens=True).input_ids
    assert ids == list(bundled_model(name).tokenizer.encode(text).ids)
    assert max(ids, default=0) < 8192


def test_mask_token_is_set():
    tokenizer = AutoTokenizer.from_pretrained(TRAINED_HERE / FIRST_BERT)
    assert tokenizer.mask_token_id == bundled_model(FIRST_BERT).tokenizer.mask_id == 8191
    assert len(tokenizer) == 8192


def test_weights_have_full_precision_by_default(name: str):
    model: Any = CLASSES[name].from_pretrained(TRAINED_HERE / name).eval()
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    ours = bundled_model(name)
    ids = torch.tensor([ours.tokenizer.encode("The captain of the [MASK] went on board").ids])
    with torch.inference_mode():
        run = ours.core(ids)
        logits = run.logits if name == FIRST_GPT2 else masked_word_head(ours)(run.hidden)
        assert_close(logits, model(ids).logits, atol=1e-5, rtol=1e-5)
    assert pretrained.load(name, device="cpu").dtype == torch.float32
