"""Evaluate the trained models on held-out books: `python -m training.evaluate`.

GPT-2's perplexity is compared with that of a bigram and a trigram model of the same books. BERT's
accuracy on masked words is compared with that of always predicting the most frequent token. The
models come from `pretrained/checkpoints`, loaded the same way as on the site.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import pretrained
from pretrained.masked_word import masked_word_head
from training.batches import windows
from training.corpus import Corpus, load_or_encode
from training.n_grams import NGrams, perplexity
from training.train import add_arguments, load_tokenizer
from training.vocabulary import special_ids

TEXTS, BATCH = 256, 8
MASKED = 0.15  # share of masked tokens; here all of them are replaced by the mask


@torch.inference_mode()
def gpt2_losses(model: pretrained.Pretrained, texts: Tensor) -> Tensor:
    """Loss of each token from the second on, in nats: (texts, T) -> (texts, T - 1)."""
    losses = []
    for part in torch.split(texts, BATCH):
        logits = model.core(part[:, :-1]).logits
        assert logits is not None
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), part[:, 1:].flatten(), reduction="none"
        )
        losses.append(loss.view(len(part), -1))
    return torch.cat(losses)


@torch.inference_mode()
def bert_answers(
    model: pretrained.Pretrained, texts: Tensor, mask_id: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the masked tokens and the model's top predictions for each batch: (M) and (M)."""
    head = masked_word_head(model)
    generator = torch.Generator().manual_seed(0)
    for part in torch.split(texts, BATCH):
        is_target = torch.rand(part.shape, generator=generator) < MASKED
        hidden = model.core(torch.where(is_target, mask_id, part)).hidden[is_target]
        yield part[is_target], head(hidden).argmax(dim=-1)


def report(corpus: Corpus, vocab_size: int, mask_id: int) -> dict[str, float]:
    """Every measure by name: perplexities per token, accuracies from 0 to 1."""
    gpt2, bert = (pretrained.load(name) for name in ("gpt2-novels", "bert-novels"))
    texts = windows(corpus.held_out, TEXTS, gpt2.core.config.context_length + 1, seed=(2,))
    counts = NGrams(corpus.train, vocab_size)
    flat: NDArray[np.int64] = texts.flatten().numpy()
    measures = {
        "unigram perplexity": perplexity(counts.unigram(flat)),
        "bigram perplexity": perplexity(counts.bigram(flat)),
        "trigram perplexity": perplexity(counts.trigram(flat)),
    }
    losses = gpt2_losses(gpt2, texts)
    measures["gpt2-novels perplexity"] = losses.mean().exp().item()
    for place in (40, 200, 400):
        measures[f"gpt2-novels loss at token {place}"] = (
            losses[:, place - 20 : place + 20].mean().item()
        )
    answers = list(bert_answers(bert, texts[:, : bert.core.config.context_length], mask_id))
    right, guesses = (torch.cat(parts) for parts in zip(*answers, strict=True))
    most_frequent = int(np.bincount(corpus.train).argmax())
    measures["most frequent token, accuracy"] = (right == most_frequent).double().mean().item()
    measures["bert-novels accuracy"] = (right == guesses).double().mean().item()
    return measures


def evaluate(corpus: Path, runs: Path) -> dict[str, float]:
    """The `report` for an archive of books, whose ids are cached in the runs folder."""
    tokenizer = load_tokenizer(corpus, runs)
    end, mask = special_ids(tokenizer)
    return report(load_or_encode(corpus, tokenizer, end, runs), tokenizer.get_vocab_size(), mask)


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    args = parser.parse_args()
    for name, value in evaluate(args.corpus, args.runs).items():
        print(f"{name:32} {value:.4f}")


if __name__ == "__main__":
    main()
