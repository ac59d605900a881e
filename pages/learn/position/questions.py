"""The questions of the page "Position", answered by the core."""

from __future__ import annotations

from pages.learn.position.distances import sinusoids
from serving.cache import cached
from ui.text.number_text import written
from ui.widgets.questions import Question, nearest


@cached(key=lambda: "questions")
def questions() -> list[Question]:
    """Three questions; what is right is computed by the functions of the page."""
    return [_order(), _same_product(), _fast_pair()]


def _order() -> Question:
    import torch

    from pages.learn.position.experiment.longer import small_model
    from pages.learn.position.experiment.order import in_two_orders

    model = small_model(None, 8, 1)
    changed = in_two_orders(model, torch.arange(3), [2, 1, 0], positions=False)
    share = changed.difference / changed.largest
    right, wrong = nearest(
        share, {"the same vector": 0.0, "about half of it": 0.5, "quite another vector": 1.0}
    )
    return Question(
        ask="A layer without a mask and without positions reads “dog bites man”, then “man bites "
        "dog”. What does it hand to “dog” the second time?",
        right=right,
        wrong=wrong,
        because="Of a random core the largest change is "
        f"{written(changed.difference, '.1e')}, of numbers up to {changed.largest:.2f}: the same "
        "keys and values, added up in another order.",
    )


def _same_product() -> Question:
    products = sinusoids(64).products
    asked = float(products[3, 8])
    pairs = {"20 and 25": (20, 25), "3 and 9": (3, 9), "6 and 16": (6, 16)}
    right, wrong = nearest(asked, {name: float(products[pair]) for name, pair in pairs.items()})
    return Question(
        ask="Take the sinusoids of 64 columns at positions 3 and 8, and their dot product. Which "
        "two other positions have the same one?",
        right=right,
        wrong=wrong,
        because=f"{asked:.4f}, and "
        + ", ".join(f"{name}: {products[pair]:.4f}" for name, pair in pairs.items())
        + ". Only the distance counts.",
    )


def _fast_pair() -> Question:
    from pages.learn.position.experiment.longer import (
        LINEAR,
        YARN,
        frequencies,
        scalings,
    )

    all_scalings = scalings(4.0, 8192)
    plain, yarn, linear = (
        frequencies(64, 100_000.0, 4 * 8192, scaling)
        for scaling in (None, all_scalings[YARN], all_scalings[LINEAR])
    )
    fast, slow = (float(plain[pair] / yarn[pair]) for pair in (0, -1))
    right, wrong = nearest(fast, {"not at all": 1.0, "2 times": 2.0, "4 times": 4.0})
    return Question(
        ask="YaRN makes room for texts of 4 trained lengths. By how much does it slow the "
        "fastest pair down?",
        right=right,
        wrong=wrong,
        because=f"It is divided by {fast:.2f}, the slowest by {slow:.2f}; linear scaling divides "
        f"both by {float(plain[0] / linear[0]):.2f}. The fastest pair tells neighbours apart, and "
        "has shown training all of its angles.",
    )
