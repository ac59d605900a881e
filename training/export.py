"""A trained model as a folder that transformers, and this project, load.

`python -m training.export gpt2` writes it: `config.json`, `model.safetensors` (float16) and
`tokenizer.json`, for BERT `tokenizer_config.json` too. The vocabulary is that of
`training.vocabulary`, not GPT-2's whole one; the configuration says so by its size.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from attention_core import TransformerConfig
from pretrained import weight_names
from training.recipe import Kind, recipe
from training.vocabulary import MASK, special_ids

# What transformers loads the weights as. They are stored in float16, but computing in it would show
# differences of 1e-2 between transformers and the core.
DTYPE = "float32"
FOLDER = Path(__file__).resolve().parents[1] / "pretrained" / "checkpoints"


def hf_config(kind: Kind, model: TransformerConfig, end_id: int) -> dict[str, Any]:
    """The config.json of a model with these sizes."""
    if kind == "gpt2":
        return {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": model.vocab_size,
            "n_positions": model.context_length,
            "n_embd": model.d_model,
            "n_layer": model.n_layers,
            "n_head": model.n_heads,
            "n_inner": model.d_ff,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": model.norm_eps,
            "bos_token_id": end_id,
            "eos_token_id": end_id,
            "dtype": DTYPE,
        }
    return {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.context_length,
        "hidden_size": model.d_model,
        "num_hidden_layers": model.n_layers,
        "num_attention_heads": model.n_heads,
        "intermediate_size": model.d_ff,
        "type_vocab_size": model.n_segments,
        "hidden_act": "gelu",
        "layer_norm_eps": model.norm_eps,
        "pad_token_id": None,
        "dtype": DTYPE,
    }


def gpt2_state(core: dict[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    """The core's weights under the names of GPT2LMHeadModel; the output matrix is tied."""
    state = {"wte.weight": core["unembedding"].t(), "wpe.weight": core["positions"]}
    for kind in ("weight", "bias"):
        state[f"ln_f.{kind}"] = core[f"final_norm.{kind}"]
        for layer in range(n_layers):
            for ours, theirs in weight_names.GPT2_LAYER.items():
                state[f"h.{layer}.{theirs}.{kind}"] = core[f"blocks.{layer}.{ours}.{kind}"]
    return {f"transformer.{name}": weight.contiguous() for name, weight in state.items()}


def bert_state(
    core: dict[str, Tensor], head: dict[str, Tensor], n_layers: int
) -> dict[str, Tensor]:
    """The weights of the core and of its head under the names of BertForMaskedLM."""
    state = {
        "bert.embeddings.word_embeddings.weight": core["embedding"],
        "bert.embeddings.position_embeddings.weight": core["positions"],
        "bert.embeddings.token_type_embeddings.weight": core["segments"],
        "cls.predictions.transform.dense.weight": head["dense"].t(),
        "cls.predictions.transform.dense.bias": head["dense_bias"],
        "cls.predictions.transform.LayerNorm.weight": head["norm_weight"],
        "cls.predictions.transform.LayerNorm.bias": head["norm_bias"],
        "cls.predictions.bias": head["output_bias"],
    }
    for kind in ("weight", "bias"):
        state[f"bert.embeddings.LayerNorm.{kind}"] = core[f"embedding_norm.{kind}"]
        for layer in range(n_layers):
            ours, theirs = f"blocks.{layer}", f"bert.encoder.layer.{layer}"
            for our_name, norm in weight_names.BERT_NORMS.items():
                state[f"{theirs}.{norm}.{kind}"] = core[f"{ours}.{our_name}.{kind}"]
            for our_name, linears in weight_names.BERT_MATRICES.items():
                parts = core[f"{ours}.{our_name}.{kind}"].chunk(len(linears), dim=-1)
                for linear, part in zip(linears, parts, strict=True):
                    state[f"{theirs}.{linear}.{kind}"] = part.t()
    return {name: weight.contiguous() for name, weight in state.items()}


def export(
    model: TransformerConfig, state: dict[str, Tensor], tokenizer: Tokenizer, folder: Path
) -> None:
    """Write the folder from a state dict of `training.models.LanguageModel`."""
    kind: Kind = "gpt2" if model.causal else "bert"
    core = _under("core.", state)
    if model.causal:
        weights = gpt2_state(core, model.n_layers)
    else:
        weights = bert_state(core, _under("head.", state), model.n_layers)
    folder.mkdir(parents=True, exist_ok=True)
    half = {name: weight.to(torch.float16) for name, weight in weights.items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    config = hf_config(kind, model, special_ids(tokenizer)[0])
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    (folder / "tokenizer.json").write_text(tokenizer_json(tokenizer, kind), "utf-8")
    if kind == "bert":
        text = json.dumps(tokenizer_config(model.context_length), indent=1) + "\n"
        (folder / "tokenizer_config.json").write_text(text, "utf-8")


def tokenizer_json(tokenizer: Tokenizer, kind: Kind) -> str:
    """The tokenizer's file: for BERT a mask that is typed is the mask, for GPT-2 it is text.

    The mask stands for a word with the space before it, so it takes a space that is typed there.
    """
    value = json.loads(tokenizer.to_str())
    for token in value["added_tokens"]:
        if token["content"] == MASK:
            token["special"] = kind == "gpt2"
            token["lstrip"] = kind == "bert"
    return json.dumps(value, ensure_ascii=False)


def tokenizer_config(context_length: int) -> dict[str, Any]:
    """The tokenizer_config.json for BERT: transformers would take it for a WordPiece tokenizer."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "mask_token": MASK,
        "model_max_length": context_length,
    }


def _under(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): weight
        for name, weight in state.items()
        if name.startswith(prefix)
    }


def main() -> None:
    """Export one run: the last of its snapshots, or the one of a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("gpt2", "bert"))
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="the folder of all runs")
    parser.add_argument("--step", type=int, help="which snapshot; the last without it")
    chosen = parser.parse_args()
    snapshots = chosen.runs / chosen.kind / "snapshots"
    step = chosen.step or max(int(file.stem) for file in snapshots.glob("*.safetensors"))
    tokenizer = Tokenizer.from_file(str(chosen.runs / "tokenizer.json"))
    folder = FOLDER / f"{chosen.kind}-novels"
    state = load_file(snapshots / f"{step}.safetensors")
    export(recipe(chosen.kind).model, state, tokenizer, folder)
    print(f"step {step:,} of {chosen.kind} is in {folder}")


if __name__ == "__main__":
    main()
