"""Train GPT-2 or BERT on novels: `python -m training.train gpt2` or `bert`.

The same command resumes a run that was stopped. `--smoke` trains a small model for a minute and
reports whether it learned more than the frequency of each token.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from training.run import PretrainingRun

SMOKE_SECONDS = 60
CORPUS = "100_english_novels.tar.xz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the corpus and the runs folder."""
    parser.add_argument(
        "--corpus",
        type=Path,
        default=os.environ.get("ATTENTION_LAB_CORPUS", CORPUS),
        help="archive of the books, read if their ids aren't in the runs folder yet",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of all runs")


def load_tokenizer(corpus: Path, folder: Path) -> Tokenizer:
    """The reduced tokenizer from the folder, or a new one from the training books."""
    from tokenizers import Tokenizer

    from pretrained.tokenization.gpt2 import gpt2
    from training.corpus import read_books, split
    from training.vocabulary import build_tokenizer, save

    file = folder / "tokenizer.json"
    if not file.is_file():
        try:
            lines = gpt2().merge_lines
        except ValueError as error:
            raise SystemExit(str(error)) from error
        merges = [(left, right) for left, right in (line.split(" ") for line in lines)]
        folder.mkdir(parents=True, exist_ok=True)
        save(build_tokenizer(merges, split(read_books(corpus))[0].values()), file)
    return Tokenizer.from_file(str(file))


def smoke(run: PretrainingRun, seconds: float) -> int:
    """Train for some seconds; return 0 if the loss gets below the unigram entropy.

    Returns 1 otherwise.
    """
    from training.run import read_curve

    run.train(seconds=seconds)
    loss = float(read_curve(run.folder)[-1]["train_loss"])
    entropy = run.unigram_entropy()
    print(f"loss {loss:.3f}, unigram entropy {entropy:.3f} nats")
    return 0 if loss < entropy else 1


def main(arguments: list[str] | None = None) -> int:
    """Train one model; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=("gpt2", "bert"), default="gpt2")
    add_arguments(parser)
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 uses all")
    parser.add_argument("--smoke", action="store_true", help="train a small model for one minute")
    args = parser.parse_args(arguments)
    if not args.corpus.exists():
        parser.error(f"{args.corpus} doesn't exist; pass the archive of the books with --corpus")

    import torch

    from training.corpus import load_or_encode
    from training.recipe import recipe, smoke_recipe
    from training.run import PretrainingRun
    from training.vocabulary import special_ids

    if args.threads:
        torch.set_num_threads(args.threads)
    tokenizer = load_tokenizer(args.corpus, args.runs)
    n_tokens, mask_id = special_ids(tokenizer)
    corpus = load_or_encode(args.corpus, tokenizer, n_tokens, args.runs)
    how, folder = recipe(args.kind), args.runs / args.kind
    if args.smoke:
        how, folder = smoke_recipe(how), args.runs / "smoke"
        shutil.rmtree(folder, ignore_errors=True)
    run = PretrainingRun(how, corpus, folder, n_tokens=n_tokens, mask_id=mask_id)
    if args.smoke:
        return smoke(run, SMOKE_SECONDS)
    run.train()
    return 0


if __name__ == "__main__":
    sys.exit(main())
