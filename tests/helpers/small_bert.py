"""A small random BERT with a masked-word head, and copies with zeroed heads."""

import copy
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForMaskedLM

from tests.helpers.reference_models import enlarge

# All sizes are distinct: 3 layers, 5 heads of size 4.
BERT = {
    "max_position_embeddings": 29, "hidden_size": 20, "num_hidden_layers": 3,
    "num_attention_heads": 5, "intermediate_size": 28, "type_vocab_size": 2,
    "attn_implementation": "eager",
}  # fmt: skip
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "old", "lamp", "kettle", "sings", "before", "a", "storm", "."]


def bert() -> Any:
    return BertForMaskedLM(BertConfig(vocab_size=83, **BERT))


def zero_head(reference: Any, family: str, layer: int, head: int, size: int) -> Any:
    """Return a copy of the model with a head's output zeroed."""
    other = copy.deepcopy(reference)
    columns = slice(head * size, (head + 1) * size)
    with torch.no_grad():
        if family == "gpt2":  # Conv1D: (d_in, d_out)
            other.transformer.h[layer].attn.c_proj.weight[columns] = 0.0
        elif family == "llama":
            other.model.layers[layer].self_attn.o_proj.weight[:, columns] = 0.0
        else:
            output = other.bert.encoder.layer[layer].attention.output.dense
            output.weight[:, columns] = 0.0
    return other


def save_bert(folder: Path, **options: Any) -> Any:
    """Save a tiny BERT with its masked-word head and a vocabulary, as transformers does."""
    vocabulary = [*SPECIAL, *WORDS]
    reference = enlarge(BertForMaskedLM(BertConfig(vocab_size=len(vocabulary), **BERT, **options)))
    reference.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    return reference
