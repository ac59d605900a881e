"""Export a trained model in a format that transformers and this project load.

`python -m training.export gpt2` writes `config.json`, `model.safetensors` (float16) and
`tokenizer.json`, and for BERT also `tokenizer_config.json`. The vocabulary is the reduced one from
`training.vocabulary`, so its size in the configuration is smaller than GPT-2's.
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
from pretrained.export import checkpoint_config, checkpoint_state
from training.recipe import Kind, recipe
from training.vocabulary import MASK, special_ids

# The dtype in which transformers loads the weights. They're stored in float16, but computing in
# float16 would cause differences of 1e-2 between transformers and the core.
DTYPE = "float32"
FOLDER = Path(__file__).resolve().parents[1] / "pretrained" / "checkpoints"


def masked_word_state(head: dict[str, Tensor]) -> dict[str, Tensor]:
    """The masked-word head's weights, with the names in BertForMaskedLM."""
    return {
        "cls.predictions.transform.dense.weight": head["dense"].t(),
        "cls.predictions.transform.dense.bias": head["dense_bias"],
        "cls.predictions.transform.LayerNorm.weight": head["norm_weight"],
        "cls.predictions.transform.LayerNorm.bias": head["norm_bias"],
        "cls.predictions.bias": head["output_bias"],
    }


def export(
    model: TransformerConfig, state: dict[str, Tensor], tokenizer: Tokenizer, folder: Path
) -> None:
    """Write the folder from a state dict of `training.models.LanguageModel`."""
    kind: Kind = "gpt2" if model.causal else "bert"
    head = {} if model.causal else masked_word_state(_with_prefix("head.", state))
    weights = checkpoint_state(model, _with_prefix("core.", state), head)
    folder.mkdir(parents=True, exist_ok=True)
    half = {name: weight.to(torch.float16) for name, weight in weights.items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    config = checkpoint_config(model) | {"dtype": DTYPE}
    if kind == "gpt2":
        config["bos_token_id"] = config["eos_token_id"] = special_ids(tokenizer)[0]
    else:
        config["architectures"] = ["BertForMaskedLM"]
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    (folder / "tokenizer.json").write_text(tokenizer_json(tokenizer, kind), "utf-8")
    if kind == "bert":
        text = json.dumps(tokenizer_config(model.context_length), indent=1) + "\n"
        (folder / "tokenizer_config.json").write_text(text, "utf-8")


def tokenizer_json(tokenizer: Tokenizer, kind: Kind) -> str:
    """The tokenizer file. A typed [MASK] is the mask token for BERT, but plain text for GPT-2.

    The mask replaces a word including the space before it, so it absorbs a space that's typed
    there.
    """
    value = json.loads(tokenizer.to_str())
    for token in value["added_tokens"]:
        if token["content"] == MASK:
            token["special"] = kind == "gpt2"
            token["lstrip"] = kind == "bert"
    return json.dumps(value, ensure_ascii=False)


def tokenizer_config(context_length: int) -> dict[str, Any]:
    """BERT's tokenizer_config.json; without it, transformers would assume WordPiece."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "mask_token": MASK,
        "model_max_length": context_length,
    }


def _with_prefix(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): weight
        for name, weight in state.items()
        if name.startswith(prefix)
    }


def main() -> None:
    """Export one run: its last snapshot, or the one from a given step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("gpt2", "bert"))
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="the folder of all runs")
    parser.add_argument("--step", type=int, help="step of the snapshot; the last one by default")
    args = parser.parse_args()
    snapshots = args.runs / args.kind / "snapshots"
    step = args.step or max(int(file.stem) for file in snapshots.glob("*.safetensors"))
    tokenizer = Tokenizer.from_file(str(args.runs / "tokenizer.json"))
    folder = FOLDER / f"{args.kind}-novels"
    state = load_file(snapshots / f"{step}.safetensors")
    export(recipe(args.kind).model, state, tokenizer, folder)
    print(f"Exported step {step:,} of {args.kind} to {folder}")


if __name__ == "__main__":
    main()
