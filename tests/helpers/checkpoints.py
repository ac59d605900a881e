"""Save model folders with transformers and load them with the core and with transformers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

import pretrained
from pretrained import checkpoint
from pretrained.masked_word import masked_word_head
from pretrained.weights import core_from_state_dict

State = dict[str, Tensor]
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "bert": "BertForMaskedLM"}


def save_tokenizer(folder: Path) -> None:
    """Save a byte-level BPE with four tokens, for models whose texts don't matter."""
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate("abc\u0120")}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def change_state(folder: Path, change: Callable[[State], object]) -> None:
    file = folder / checkpoint.WEIGHTS_FILE
    state = {name: tensor.clone() for name, tensor in load_file(file).items()}
    change(state)
    save_file(state, file, {"format": "pt"})


def our_logits(family: str, folder: Path, tokens: Tensor) -> Tensor:
    if family != "bert":
        core = core_from_state_dict(checkpoint.read_config(folder), checkpoint.read_state(folder))
        return core(tokens).logits
    model = pretrained.load(folder.name, device="cpu")
    return masked_word_head(model)(model.core(tokens).hidden)


def their_logits(family: str, folder: Path, tokens: Tensor) -> tuple[Tensor, set[str]]:
    """Return the logits from transformers, and the weights that it had to initialize."""
    import transformers

    model_class: Any = getattr(transformers, CLASSES[family])
    model, info = model_class.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    with torch.inference_mode():
        return model.eval()(tokens).logits, set(info["missing_keys"])
