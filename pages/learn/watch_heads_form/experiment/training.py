"""Train the two layers on repeats, and measure which heads have formed.

The scores are the same as on the page Heads (`analysis.head_statistics`): the weight on the
previous token, and on the token after an earlier occurrence of the query's token (Olsson et al.
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

BATCH, RATE, WARM_UP = 32, 0.005, 20  # sequences per step, learning rate, warm-up steps
N_TESTED, TEST_SEED = 24, 12_345  # test sequences, the same for every run
BLIND_GUESS = math.log(VOCABULARY)  # the loss if every token gets the same probability


@dataclass(frozen=True)
class Measurement:
    """The model's losses and scores on sequences that it wasn't trained on.

    loss_trained, loss_unseen: mean loss of the predictable tokens, at trained and at unseen
    distances. right: the share of predictable tokens at unseen distances that the model ranks
    first. loss_writing: the loss at unseen distances with later tokens hidden, as in generation;
    for a causal model it equals `loss_unseen`. Scores by layer and head, (L, H): previous (on the
    previous token), induction (at unseen distances), induction_trained, and next (on the next
    token; NaN if the mask hides it). maps: the weights on the `probe`, (L, H, T, T).
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
    """A model, its optimizer and its random sequences; the same seed gives the same run.

    distances: those in the training sequences.
    Raises: ValueError for an invalid seed or distance, or a distance reserved for the test.
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
            raise ValueError(f"distances {kept_apart} are reserved for the test")
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
        """Take a training step on new sequences, and return the loss before it."""
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
        """Measure losses and scores, as tensors on the CPU."""
        self.model.eval()
        unseen, trained = self._unseen, self._trained
        logits, records = self.model(unseen.ids)
        loss_unseen = loss_writing = float(repeat_losses(logits, unseen).mean())
        if not self.model.design.causal:
            written, _ = self.model(unseen.ids, causal=True)
            loss_writing = float(repeat_losses(written, unseen).mean())
        right = (logits[:, :-1].argmax(-1) == unseen.ids[:, 1:])[unseen.predictable]
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
    """The negative log probability of each predictable next token.

    Logits (B, T, vocabulary) -> (n), sequence after sequence. The rest of each sequence is random,
    so there is nothing to learn from it.
    """
    losses = nn.functional.cross_entropy(
        logits[:, :-1].transpose(1, 2), repeats.ids[:, 1:], reduction="none"
    )
    return losses[repeats.predictable]


def induction_scores(weights: Tensor, repeats: Repeats) -> Tensor:
    """The mean weight from a repeated token to the token after its first copy.

    (L, B, H, T, T) -> (L, H): the mean of `induction_score`, which takes one sequence at a time
    because distances differ.
    """
    n, starts = repeats.distances.tolist(), repeats.starts.tolist()
    of_sequences = [
        induction_score(weights[:, b], n[b], start=starts[b]) for b in range(weights.shape[1])
    ]
    return torch.stack(of_sequences).mean(0)


def _on_neighbour(
    score: Callable[[TextWeights], Tensor], weights: Tensor, repeats: Repeats, causal: bool
) -> Tensor:
    """A score that depends only on positions, as the mean over sequences: -> (L, H)."""
    ids = repeats.ids[0]  # the scores don't depend on the tokens
    special = torch.zeros_like(ids, dtype=torch.bool)
    return score(TextWeights(weights, ids, special, causal)).mean(1)
