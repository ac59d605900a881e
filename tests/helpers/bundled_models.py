"""The bundled models, for tests that compute expected values independently."""

import functools

import numpy as np
import torch

import pretrained
from pretrained import Tokens

# The defaults on pages about the two architectures, trained in this project.
FIRST_BERT, FIRST_GPT2 = "bert-novels", "gpt2-novels"
# The defaults on other pages. The encoder adds [CLS] and [SEP]. The decoder has 30 layers, rotary
# positions and shared key/value heads.
ENCODER, DECODER = "all-minilm-l6-v2", "smollm2-135m-instruct"


@functools.cache
def bundled_model(name: str) -> pretrained.Pretrained:
    """Return the tests' own copy, so that a page that modifies its model is detected.

    It's on the CPU wherever the site's model is, because pages must also be correct on a GPU. It's
    loaded once (SmolLM2 takes a second) and read-only, because tests share it.
    """
    return pretrained.load(name, device="cpu")


def attention(name: str, text: str, layer: int, head: int) -> tuple[torch.Tensor, Tokens]:
    """Return a head's weights (queries, keys) and the tokens of a text, without the site's code."""
    model = bundled_model(name)
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        record = model.core(torch.tensor([tokens.ids]), record=True).records[layer]
    return record.weights[0, head], tokens


def weights(name: str, text: str, layer: int, head: int) -> np.ndarray:
    """Return the weights only."""
    return attention(name, text, layer, head)[0].numpy()
