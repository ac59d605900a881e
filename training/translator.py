"""Train the date translator and save it: `python -m training.translator`.

The seeds are fixed and it runs on one thread, so a run is reproducible.
`python -m training.translator --measure` doesn't train, but prints the accuracy of the stored
weights on 2,000 texts with dates that aren't in the training data.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

from pages.learn.two_networks.experiment.dates import START, batch, pairs
from pages.learn.two_networks.experiment.model import WEIGHTS, Translator, trained_translator

STEPS, BATCH, RATE = 1000, 128, 3e-3


def train(steps: int = STEPS) -> Translator:
    """Train a translator for `steps` batches.

    Raises: ValueError if `steps` isn't positive.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    torch.manual_seed(0)
    model = Translator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for step in range(steps):
        texts, answers = zip(*pairs(BATCH, step, held_out=False), strict=True)
        target = batch(list(answers))  # (B, 10)
        written = torch.cat((torch.full((BATCH, 1), START), target[:, :-1]), dim=1)
        logits = model(batch(list(texts)), written).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    return model.eval()


def accuracy(model: Translator, count: int, seed: int) -> float:
    """The share of held-out texts that are translated without errors, from 0 to 1."""
    texts, answers = zip(*pairs(count, seed, held_out=True), strict=True)
    written, _ = model.translate(batch(list(texts)))
    return (written == batch(list(answers))).all(dim=1).double().mean().item()


def main() -> None:
    """Train and store the weights, or measure the stored ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="only measure the stored weights")
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.measure:
        from safetensors.torch import save_file

        save_file(train(arguments.steps).state_dict(), WEIGHTS)
    model = trained_translator()
    print(f"accuracy on 2,000 held-out texts: {accuracy(model, 2000, 10**6):.4f}")


if __name__ == "__main__":
    main()
