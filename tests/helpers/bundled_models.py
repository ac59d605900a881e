"""The bundled models for tests that compute what a page should show."""

import functools

import numpy as np
import torch

import pretrained
from pretrained import Tokens

# What pages about the two architectures show first, trained here.
FIRST_BERT, FIRST_GPT2 = "bert-novels", "gpt2-novels"
# What other pages show first. The encoder adds [CLS] and [SEP]; the decoder has 30 layers, rotary
# positions and shared key/value heads.
ENCODER, DECODER = "all-minilm-l6-v2", "smollm2-135m-instruct"


@functools.cache
def bundled_model(name: str) -> pretrained.Pretrained:
    """A copy of the tests' own, never the site's, so that a page that changed its model is found.

    On the CPU, wherever the site's model is: what a page says then has to be true on a GPU too.
    Loaded once: SmolLM2 takes a second. Read-only, as everything that is shared.
    """
    return pretrained.load(name, device="cpu")


def attention(name: str, text: str, layer: int, head: int) -> tuple[torch.Tensor, Tokens]:
    """One head's weights (queries, keys) on a text, without any of the site's code."""
    model = bundled_model(name)
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        record = model.core(torch.tensor([tokens.ids]), record=True).records[layer]
    return record.weights[0, head], tokens


def weights(name: str, text: str, layer: int, head: int) -> np.ndarray:
    """The same without the tokens."""
    return attention(name, text, layer, head)[0].numpy()
