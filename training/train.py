"""Train GPT-2 and BERT on novels: `python -m training.train gpt2` or `bert`.

A run that was stopped goes on when the same command is given again. `--smoke` trains a small model
for a minute and says whether it has learned more than how frequent each token is.
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
    """Where the books and the runs are: what all programs that need both take."""
    parser.add_argument(
        "--corpus",
        type=Path,
        default=os.environ.get("ATTENTION_LAB_CORPUS", CORPUS),
        help="the archive of the books, read where the folder of all runs lacks them",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="the folder of all runs")


def the_tokenizer(corpus: Path, folder: Path) -> Tokenizer:
    """The cut vocabulary: that of the folder, or one made from the books to train on."""
    from tokenizers import Tokenizer

    from pretrained.tokenization.gpt2 import gpt2
    from training.corpus import read_books, split
    from training.vocabulary import cut, save

    file = folder / "tokenizer.json"
    if not file.is_file():
        try:
            lines = gpt2().merge_lines
        except ValueError as error:
            raise SystemExit(str(error)) from error
        merges = [(left, right) for left, right in (line.split(" ") for line in lines)]
        folder.mkdir(parents=True, exist_ok=True)
        save(cut(merges, split(read_books(corpus))[0].values()), file)
    return Tokenizer.from_file(str(file))


def smoke(run: PretrainingRun, seconds: float) -> int:
    """Train for so long; 0 if the last loss is below the entropy of single tokens, else 1."""
    from training.run import read_curve

    run.train(seconds=seconds)
    loss = float(read_curve(run.folder)[-1]["train_loss"])
    entropy = run.unigram_entropy()
    print(f"loss {loss:.3f}, entropy of single tokens {entropy:.3f} nats")
    return 0 if loss < entropy else 1


def main(arguments: list[str] | None = None) -> int:
    """Train one model; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=("gpt2", "bert"), default="gpt2")
    add_arguments(parser)
    parser.add_argument("--threads", type=int, default=0, help="of the processor; 0: all")
    parser.add_argument("--smoke", action="store_true", help="a small model, for one minute")
    chosen = parser.parse_args(arguments)
    if not chosen.corpus.exists():
        parser.error(f"{chosen.corpus} is not here; --corpus names the archive of the books")

    import torch

    from training.corpus import encoded
    from training.recipe import recipe, small
    from training.run import PretrainingRun
    from training.vocabulary import special_ids

    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    tokenizer = the_tokenizer(chosen.corpus, chosen.runs)
    n_tokens, mask_id = special_ids(tokenizer)
    corpus = encoded(chosen.corpus, tokenizer, n_tokens, chosen.runs)
    how, folder = recipe(chosen.kind), chosen.runs / chosen.kind
    if chosen.smoke:
        how, folder = small(how), chosen.runs / "smoke"
        shutil.rmtree(folder, ignore_errors=True)
    run = PretrainingRun(how, corpus, folder, n_tokens=n_tokens, mask_id=mask_id)
    if chosen.smoke:
        return smoke(run, SMOKE_SECONDS)
    run.train()
    return 0


if __name__ == "__main__":
    sys.exit(main())
