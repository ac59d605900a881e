"""Record a training run for the page *Heads*: `python -m training.history gpt2`.

At every snapshot, the model reads a few texts. The file stores the weights of all heads, their
scores, and the loss on held-out books. `pretrained.history` reads it and describes its contents.
Letters: N snapshots, L layers, H heads of a layer, T tokens of a text.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from attention_core import Transformer, TransformerConfig
from attention_core.analysis.head_statistics import (
    STATISTICS,
    TextWeights,
    repeated_scores,
)
from attention_core.analysis.repeated_words import repeated_words
from pretrained.history import CONTEXTS, CURVE, FILE, FOLDER, LEVELS, TEXT_SCORES
from pretrained.tokenization.bpe import FastBpe
from training.batches import windows
from training.corpus import load_or_encode
from training.recipe import Recipe, recipe
from training.run import PretrainingRun, read_curve
from training.train import add_arguments
from training.vocabulary import special_ids

TEXTS = {
    "Words said twice": " river candle green seven window Mary stone music paper forty bread horse"
    " winter letter chair captain" * 2,
    "Phrases that return": "The old man looked at the boy, and the boy looked at the old man. Then "
    "they went out of the house and down to the river.",
    "Names that return": "When Mary and John went into the garden, John gave a rose to Mary, and "
    "Mary gave the rose to her sister.",
}
MAX_POINTS = 100  # points of the curve
AROUND = 20  # tokens on each side of the position whose loss is measured
_AT_ONCE = 10  # files written within this many seconds belong together
_CONTEXT_TEXTS, _CONTEXT_SEED = 64, 10**6 + 1

# Computes a snapshot's losses by name from a LanguageModel's state dict, its core and its step.
Losses = Callable[[Mapping[str, Tensor], Transformer, int], Mapping[str, float]]


def arrays(
    folder: Path,
    how: Recipe,
    tokenizer: FastBpe,
    losses: Losses,
    texts: Mapping[str, str] = TEXTS,
) -> dict[str, np.ndarray]:
    """All arrays for the file, from the snapshots and the curve in a run's folder.

    Raises: ValueError if there are no snapshots, or the curve is empty.
    """
    files, lines = snapshots(folder), read_curve(folder)
    if not files or not lines:
        raise ValueError(f"{folder} has {len(files)} snapshots and {len(lines)} lines of a curve")
    read = [tokenizer.encode(text) for text in texts.values()]
    results: dict[str, list[Any]] = {}
    for step, file in files.items():
        state = {name: weight.float() for name, weight in load_file(file).items()}
        core = core_from_state(state, how.model)
        one: dict[str, Any] = {**snapshot_arrays(core, tokenizer, [tokens.ids for tokens in read])}
        one |= {
            f"loss_{name}": np.float32(loss) for name, loss in losses(state, core, step).items()
        }
        for name, array in one.items():
            results.setdefault(name, []).append(array)
        print(f"step {step:,} of {folder.name}", flush=True)
    result = {name: np.stack(stack) for name, stack in results.items()}
    result |= {f"curve_{column}": values for column, values in curve(lines).items()}
    for number, tokens in enumerate(read):
        result[f"ids_{number}"] = np.array(tokens.ids, np.int32)
        result[f"labels_{number}"] = np.array(tokens.labels)
    return result | {
        "causal": np.array(how.model.causal),
        "steps": np.array([*files]),
        "tokens": np.array([*files]) * how.tokens_per_step,
        "text_lengths": np.array(text_lengths(how)),
        "titles": np.array([*texts]),
        "texts": np.array([*texts.values()]),
    }


def snapshots(folder: Path) -> dict[int, Path]:
    """Snapshot files of a run by step, in ascending order.

    Leaves out files that are clearly older than one of an earlier step, because they come from an
    earlier run that was restarted. Times don't matter for files that were all written together.
    """
    files = {int(file.stem): file for file in (folder / "snapshots").glob("*.safetensors")}
    sizes: dict[int, Path] = {}
    newest = 0.0
    for step in sorted(files):
        written = files[step].stat().st_mtime
        if written >= newest - _AT_ONCE:
            sizes[step], newest = files[step], max(written, newest)
    return sizes


def core_from_state(state: Mapping[str, Tensor], config: TransformerConfig) -> Transformer:
    """The core with the weights from a LanguageModel's state dict."""
    core = Transformer(config)
    start = "core."
    core.load_state_dict(
        {name.removeprefix(start): w for name, w in state.items() if name.startswith(start)}
    )
    return core.eval()


def snapshot_arrays(
    core: Transformer, tokenizer: FastBpe, texts: Sequence[Sequence[int]]
) -> dict[str, np.ndarray]:
    """Weights and scores of all heads.

    For each text `codes` (L, H, T, T), `largest` (L, H) and `scores` (4, L, H); plus
    `repeated_scores` (2, L, H).
    """
    measures = {statistic.name: statistic.measure for statistic in STATISTICS}
    result = {}
    for number, ids in enumerate(texts):
        row = torch.tensor(ids)
        with torch.inference_mode():
            records = core(row[None], record=True).records
            weights = torch.stack([record.weights[0] for record in records])  # (L, H, T, T)
            none_special = torch.zeros(len(row), dtype=torch.bool)
            text = TextWeights(weights, row, none_special, core.config.causal)
            scores = [measure(text) for name in TEXT_SCORES if (measure := measures[name])]
        result[f"scores_{number}"] = torch.stack(scores).numpy()
        codes, largest = quantize(weights.numpy())
        result |= {f"codes_{number}": codes, f"largest_{number}": largest}
    config = core.config
    size = min(tokenizer.vocab_size, config.vocab_size)
    twice = repeated_words(size, tokenizer.decode, config.context_length)
    if twice is None:
        raise ValueError(f"a context of {config.context_length} is too short for repeated words")
    scores_twice = repeated_scores(core, twice)
    both = torch.stack([scores_twice.induction, scores_twice.duplicate])
    return result | {"said_twice": both.numpy()}


def quantize(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Encode weights in 8 bits: (..., T, T) -> codes (..., T, T), largest (...).

    Small weights get a finer resolution. The pictures of all heads use the same codes
    (`ui/canvas/codes.py`).
    """
    largest = weights.max(axis=(-1, -2))
    codes = np.rint(LEVELS * np.sqrt(weights / largest[..., None, None])).astype(np.uint8)
    return codes, largest


def curve(lines: Sequence[Mapping[str, str]]) -> dict[str, np.ndarray]:
    """At most `MAX_POINTS` lines of a curve, including those with a held-out loss.

    The others are denser in the early steps, where the loss falls quickly.
    """
    measurements = [number for number, line in enumerate(lines) if line["held_out_loss"]]
    room = MAX_POINTS - len(measurements)
    others = np.geomspace(1, len(lines), max(room, 0)).round().astype(int) - 1
    chosen = sorted({*measurements[:MAX_POINTS], *others.tolist()})
    return {
        column: np.array(
            [float(lines[number][column] or "nan") for number in chosen],
            dtype=np.int64 if column == "step" else np.float32,
        )
        for column in CURVE
    }


def text_lengths(how: Recipe) -> list[tuple[int, int]]:
    """(step, number of tokens) for each change of the text length during training."""
    steps = range(how.steps)
    changes = (n for n in steps if n == 0 or how.length_at(n) != how.length_at(n - 1))
    return [(n, how.length_at(n)) for n in changes]


def context_losses(core: Transformer, held_out: np.ndarray, longest: int) -> dict[str, float]:
    """Loss of the same held-out tokens after few and after many tokens of context.

    The tokens are the same because some parts of a book are harder to predict than others. Each
    loss is the mean over `_CONTEXT_TEXTS` passages of 2 * `AROUND` tokens, in nats. It's NaN for
    contexts beyond `longest`, the longest text in training so far, because later positions are
    untrained. Olsson et al. 2022 (https://arxiv.org/abs/2209.11895) compare the 50th and the 500th
    token.
    """
    long = windows(held_out, _CONTEXT_TEXTS, max(CONTEXTS) + AROUND + 1, seed=(_CONTEXT_SEED,))
    losses = {}
    for before in CONTEXTS:
        texts = long[:, max(CONTEXTS) - before :]
        if texts.shape[1] - 1 > longest:
            losses[f"after_{before}"] = float("nan")
            continue
        parts = [_last_losses(core, part, 2 * AROUND) for part in torch.split(texts, 8)]
        losses[f"after_{before}"] = torch.cat(parts).mean().item()
    return losses


@torch.inference_mode()
def _last_losses(core: Transformer, texts: Tensor, count: int) -> Tensor:
    """Losses of the last `count` tokens of each text: (B, T) -> (B * count)."""
    logits = core(texts[:, :-1]).logits[:, -count:]
    answers = texts[:, -count:].flatten()
    return nn.functional.cross_entropy(logits.flatten(0, 1), answers, reduction="none")


def held_out_losses(run: PretrainingRun) -> Losses:
    """A function that measures a snapshot on held-out books, as the run does."""

    def measure(state: Mapping[str, Tensor], core: Transformer, step: int) -> dict[str, float]:
        run.model.load_state_dict(state)
        losses = {"held_out": run.held_out_losses()["held_out_loss"]}
        longest = max(run.recipe.length_at(n) for n in range(max(step, 1)))
        if core.config.causal:
            return losses | context_losses(core, run.corpus.held_out, longest)
        return losses | {f"after_{before}": float("nan") for before in CONTEXTS}

    return measure


def main() -> None:
    """Write the file for one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("gpt2", "bert"))
    add_arguments(parser)
    parser.add_argument(
        "--to", type=Path, help="output file; by default the one that the site reads"
    )
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    file = args.to or FOLDER / f"{args.kind}-novels" / FILE
    tokenizer = Tokenizer.from_file(str(args.runs / "tokenizer.json"))
    how = recipe(args.kind)
    n_tokens, mask_id = special_ids(tokenizer)
    corpus = load_or_encode(args.corpus, tokenizer, n_tokens, args.runs)
    with tempfile.TemporaryDirectory() as empty:  # the run may still be in progress
        run = PretrainingRun(how, corpus, Path(empty), n_tokens=n_tokens, mask_id=mask_id)
        result = arrays(args.runs / args.kind, how, FastBpe(tokenizer), held_out_losses(run))
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file, allow_pickle=False, **result)
    print(f"{file}: {file.stat().st_size:,} bytes, steps {result['steps'].tolist()}")


if __name__ == "__main__":
    main()
