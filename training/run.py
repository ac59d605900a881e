"""A resumable training run, stored in a folder.

The folder has `curve.csv` (a line every `CURVE_EVERY` steps), `checkpoint.pt` (to resume from) and
`snapshots/<step>.safetensors` (weights of early and late steps, in float16).
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from training.batches import mask_tokens, windows
from training.corpus import Corpus
from training.loss import losses
from training.models import LanguageModel
from training.recipe import Recipe

CURVE_EVERY, HELD_OUT_EVERY, SAVE_EVERY = 20, 200, 100
PLACES = (40, 200, 400)
COLUMNS = (
    *("step", "tokens", "rate", "train_loss", "held_out_loss"),
    *(f"loss_at_{place}" for place in PLACES),
)
AROUND = 20  # tokens on each side of the position to average the loss over
_HELD_OUT_SEED, _HELD_OUT_TEXTS = 10**6, 32


class PretrainingRun:
    """The training of one model, step by step.

    n_tokens: size of the vocabulary without the two special tokens. mask_id: id of the mask.
    """

    def __init__(
        self, recipe: Recipe, corpus: Corpus, folder: Path, *, n_tokens: int, mask_id: int
    ) -> None:
        self.recipe, self.corpus, self.folder = recipe, corpus, folder
        self.n_tokens, self.mask_id = n_tokens, mask_id
        torch.manual_seed(recipe.seed)
        self.model = LanguageModel(recipe.model, recipe.dropout)
        matrices = [weight for weight in self.model.parameters() if weight.dim() > 1]
        others = [weight for weight in self.model.parameters() if weight.dim() <= 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": recipe.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            betas=(0.9, 0.98),
            fused=True,
        )
        self.step = 0
        self.losses: list[float] = []
        (folder / "snapshots").mkdir(parents=True, exist_ok=True)
        self._resume()

    @property
    def _dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.recipe.bfloat16 else torch.float32

    @property
    def is_done(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.recipe.steps

    def train(self, *, seconds: float | None = None) -> None:
        """Run the remaining steps, or as many as fit into the given number of seconds."""
        started, first = time.monotonic(), self.step
        while not self.is_done and (seconds is None or time.monotonic() - started < seconds):
            if self.step in snapshot_steps(self.recipe.steps):
                self._save_snapshot()
            self.losses.append(self.take_step())
            if self.step % CURVE_EVERY == 0 or self.is_done:
                self._write_line()
                speed = (self.step - first) / (time.monotonic() - started)
                self._report(speed)
            if self.step % SAVE_EVERY == 0 or self.is_done:
                self._save_checkpoint()
        if self.is_done:
            self._save_snapshot()

    def take_step(self) -> float:
        """Train on one batch; returns its loss in nats per predicted token."""
        recipe, length = self.recipe, self.recipe.length_at(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.rate_at(self.step)
        torch.manual_seed(recipe.seed + 1 + self.step)  # for dropout
        extra = int(recipe.model.causal)  # the last token of a window is only predicted
        texts = windows(
            self.corpus.train,
            recipe.tokens_per_step // length,
            length + extra,
            seed=(recipe.seed, self.step),
        )
        parts = torch.split(texts, recipe.tokens_per_part // length)
        self.model.train()
        total = 0.0
        for number, part in enumerate(parts):
            loss = self.loss(part, seed=self.step * len(parts) + number).mean() / len(parts)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return total

    def loss(self, texts: Tensor, *, seed: int) -> Tensor:
        """The loss of each predicted token in nats: (B * T) or (M)."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.recipe.bfloat16):
            if self.recipe.model.causal:
                states, answers = self.model.states(texts[:, :-1]).flatten(0, 1), texts[:, 1:]
                matrix = self.model.core.unembedding
                assert isinstance(matrix, Tensor)
                return losses(states, matrix, answers.flatten(), self._dtype)
            is_target = mask_tokens(
                texts, self.recipe.masked, self.n_tokens, self.mask_id, seed=seed
            )
            logits = self.model.masked_word_logits(is_target.inputs, is_target.is_target)
        return nn.functional.cross_entropy(logits.float(), is_target.targets, reduction="none")

    def unigram_entropy(self) -> float:
        """The loss, in nats, of a model that only knows the token frequencies."""
        counts = np.bincount(self.corpus.train)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    @torch.inference_mode()
    def held_out_losses(self) -> dict[str, float]:
        """The loss on held-out books, and for GPT-2 the loss of early and late tokens."""
        self.model.eval()
        length = self.recipe.length
        extra = int(self.recipe.model.causal)
        texts = windows(
            self.corpus.held_out, _HELD_OUT_TEXTS, length + extra, seed=(_HELD_OUT_SEED,)
        )
        parts = torch.split(texts, max(1, self.recipe.tokens_per_part // length))
        losses = [self.loss(part, seed=_HELD_OUT_SEED + n) for n, part in enumerate(parts)]
        measurements = {"held_out_loss": torch.cat(losses).mean().item()}
        if self.recipe.model.causal:
            by_place = torch.cat(losses).view(-1, length).mean(dim=0)
            for place in PLACES:
                if place + AROUND <= length:
                    around = by_place[place - AROUND : place + AROUND]
                    measurements[f"loss_at_{place}"] = around.mean().item()
        return measurements

    def _resume(self) -> None:
        """Resume from the last checkpoint, and drop later lines of the curve."""
        file = self.folder / "checkpoint.pt"
        lines = []
        if file.is_file():
            state = torch.load(file, weights_only=True)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.losses = state["step"], state["losses"]
            lines = [line for line in read_curve(self.folder) if int(line["step"]) <= self.step]
        with (self.folder / "curve.csv").open("w", newline="") as curve:
            writer = csv.DictWriter(curve, COLUMNS)
            writer.writeheader()
            writer.writerows(lines)

    def _write_line(self) -> None:
        line: dict[str, object] = {
            "step": self.step,
            "tokens": self.step * self.recipe.tokens_per_step,
            "rate": f"{self.recipe.rate_at(self.step - 1):.3g}",
            "train_loss": f"{sum(self.losses) / len(self.losses):.4f}",
        }
        if self.step % HELD_OUT_EVERY == 0 or self.is_done:
            line |= {name: f"{loss:.4f}" for name, loss in self.held_out_losses().items()}
        self.losses = []
        with (self.folder / "curve.csv").open("a", newline="") as curve:
            csv.DictWriter(curve, COLUMNS).writerow(line)

    def _report(self, steps_a_second: float) -> None:
        left = (self.recipe.steps - self.step) / steps_a_second / 60
        last = read_curve(self.folder)[-1]
        print(
            f"step {self.step:,} of {self.recipe.steps:,}: loss {last['train_loss']}, "
            f"held-out {last['held_out_loss'] or '-'}, "
            f"{steps_a_second * self.recipe.tokens_per_step:,.0f} tokens per second, "
            f"{left:.0f} minutes left",
            flush=True,
        )

    def _save_checkpoint(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "losses": self.losses,
        }
        unfinished = self.folder / "checkpoint.pt.new"
        torch.save(state, unfinished)
        os.replace(unfinished, self.folder / "checkpoint.pt")  # atomic

    def _save_snapshot(self) -> None:
        state = {
            name: weight.detach().half().contiguous()
            for name, weight in self.model.state_dict().items()
        }
        save_file(state, self.folder / "snapshots" / f"{self.step}.safetensors")


def snapshot_steps(steps: int) -> tuple[int, ...]:
    """The steps before which weights are saved: 0, then steps that get farther apart.

    There are up to twelve, and the last one is the end of the run.
    """
    first, count = min(50, steps), 11
    growth = (steps / first) ** (1 / (count - 1))
    return (0, *dict.fromkeys(round(first * growth**n) for n in range(count)))


def read_curve(folder: Path) -> list[dict[str, str]]:
    """The lines of a run's curve."""
    with (folder / "curve.csv").open(newline="") as curve:
        return list(csv.DictReader(curve))
