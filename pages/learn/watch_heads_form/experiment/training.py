"""Train the two layers on repeats, and measure which heads have formed.

The scores of a head are those of *Heads* (`analysis.head_statistics`): the weight on
the token before, and on the token behind the earlier occurrence of the query's token (Olsson et al.
2022, "In-context Learning and Induction Heads", https://arxiv.org/abs/2209.11895).

Dimension letters: B sequences, T tokens, L = 2 layers, H heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_core.analysis.head_statistics import (
    TextWeights,
    induction_score,
    on_next,
    on_previous,
)
from attention_core.seeding import seeded
from pages.learn.watch_heads_form.experiment.model import AttentionOnly, Design
from pages.learn.watch_heads_form.experiment.sequences import (
    TRAINED_DISTANCES,
    UNSEEN_DISTANCES,
    VOCABULARY,
    Repeats,
    draw,
    probe,
)

BATCH, RATE, WARM_UP = (
    32,
    0.005,
    20,
)  # sequences a step; the learning rate, reached in so many steps
N_TESTED, TEST_SEED = 24, 12_345  # sequences that are measured on, the same for every run
BLIND_GUESS = math.log(VOCABULARY)  # the loss of giving every token the same probability


@dataclass(frozen=True)
class Measurement:
    """What the model does after so many steps, on sequences that it was not trained on.

    loss_trained, loss_unseen: mean loss of the guesses that can be known, at distances that
    training has and at those that it never has. right: the share of those guesses at unseen
    distances whose likeliest token is right. loss_writing: at unseen distances with the later
    tokens hidden, as when a text is written; for a causal model that is `loss_unseen`. Scores by
    layer and head,
    (L, H): previous (on the token before), induction (at unseen distances), induction_trained, and
    next (on the token behind; NaN where the mask hides it). maps: the weights on the `probe`,
    (L, H, T, T).
    """

    loss_trained: float
    loss_unseen: float
    right: float
    loss_writing: float
    previous: Tensor
    induction: Tensor
    induction_trained: Tensor
    next: Tensor
    maps: Tensor


class HeadTraining:
    """A model, its optimizer and its own stream of random sequences; the same seed, the same run.

    distances: what the sequences of training are drawn with.
    Raises: ValueError for a seed or distances that cannot be drawn with, or a distance that is kept
    for the test.
    """

    def __init__(
        self,
        design: Design,
        seed: int,
        *,
        distances: Sequence[int] = TRAINED_DISTANCES,
        device: torch.device | str = "cpu",
    ) -> None:
        kept_apart = sorted(set(distances) & set(UNSEEN_DISTANCES))
        if kept_apart:
            raise ValueError(f"distances {kept_apart} are kept for the test: {UNSEEN_DISTANCES}")
        with seeded(seed):
            self.model = AttentionOnly(VOCABULARY, design).to(device)
        self.seed, self.distances, self.device = seed, tuple(distances), device
        self.n_steps = 0
        self._stream = torch.Generator().manual_seed(seed)
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0
        )
        tests = torch.Generator().manual_seed(TEST_SEED)
        self._unseen = draw(N_TESTED, UNSEEN_DISTANCES, tests).to(device)
        self._trained = draw(N_TESTED, self.distances, tests).to(device)
        self._probe = probe().to(device)

    @torch.enable_grad()
    def step(self) -> float:
        """Read new sequences, and move every matrix so that the loss falls; the loss before it."""
        repeats = draw(BATCH, self.distances, self._stream).to(self.device)
        self.n_steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = RATE * min(1.0, self.n_steps / WARM_UP)
        self.model.train()
        drops = self.model.design.dropout > 0
        with seeded(self.seed + self.n_steps) if drops else nullcontext():
            logits, _ = self.model(repeats.ids)  # [logits]
        loss = repeat_losses(logits, repeats).mean()  # [loss]
        self._optimizer.zero_grad()
        loss.backward()  # [gradients]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        return float(loss.detach())

    @torch.no_grad()
    def measure(self) -> Measurement:
        """Losses and scores now; what it holds lies on the CPU."""
        self.model.eval()
        unseen, trained = self._unseen, self._trained
        logits, records = self.model(unseen.ids)
        loss_unseen = loss_writing = float(repeat_losses(logits, unseen).mean())
        if not self.model.design.causal:
            written, _ = self.model(unseen.ids, causal=True)
            loss_writing = float(repeat_losses(written, unseen).mean())
        right = (logits[:, :-1].argmax(-1) == unseen.ids[:, 1:])[unseen.counted]
        weights = torch.stack([record.weights for record in records])  # (L, B, H, T, T)
        logits, records = self.model(trained.ids)
        at_trained = torch.stack([record.weights for record in records])
        _, records = self.model(self._probe.ids)
        causal = self.model.design.causal
        return Measurement(
            loss_trained=float(repeat_losses(logits, trained).mean()),
            loss_unseen=loss_unseen,
            right=float(right.float().mean()),
            loss_writing=loss_writing,
            previous=_on_neighbour(on_previous, weights, unseen, causal).cpu(),
            induction=induction_scores(weights, unseen).cpu(),
            induction_trained=induction_scores(at_trained, trained).cpu(),
            next=_on_neighbour(on_next, weights, unseen, causal).cpu(),
            maps=torch.stack([record.weights[0] for record in records]).cpu(),
        )


def repeat_losses(logits: Tensor, repeats: Repeats) -> Tensor:
    """-log of the probability of each next token, for the guesses that can be known.

    Logits (B, T, vocabulary) -> (n), all sequences one after the other. The rest of a sequence is
    random: nothing can be learned from it.
    """
    losses = nn.functional.cross_entropy(
        logits[:, :-1].transpose(1, 2), repeats.ids[:, 1:], reduction="none"
    )
    return losses[repeats.counted]


def induction_scores(weights: Tensor, repeats: Repeats) -> Tensor:
    """Mean weight from a repeated token to the token behind its first copy.

    (L, B, H, T, T) -> (L, H): the mean over the sequences of `induction_score`, which takes one
    distance at a time.
    """
    n, starts = repeats.distances.tolist(), repeats.starts.tolist()
    of_sequences = [
        induction_score(weights[:, b], n[b], start=starts[b]) for b in range(weights.shape[1])
    ]
    return torch.stack(of_sequences).mean(0)


def _on_neighbour(
    score: Callable[[TextWeights], Tensor], weights: Tensor, repeats: Repeats, causal: bool
) -> Tensor:
    """A score of `statistics` that positions alone decide, mean over sequences: -> (L, H)."""
    ids = repeats.ids[0]  # these scores do not look at the tokens
    special = torch.zeros_like(ids, dtype=torch.bool)
    return score(TextWeights(weights, ids, special, causal)).mean(1)
