"""Quiz questions of the page "Position"."""

from __future__ import annotations

from pages.learn.position.distances import sinusoids
from serving.cache import cached
from ui.text.formatting import format_number
from ui.widgets.questions import Question, nearest_choice


@cached(key=lambda: "questions")
def questions() -> list[Question]:
    """Three questions whose answers are computed by the functions of the page."""
    return [_order(), _same_product(), _fast_pair()]


def _order() -> Question:
    import torch

    from pages.learn.position.experiment.context_extension import small_model
    from pages.learn.position.experiment.order import compare_orders

    model = small_model(None, 8, 1)
    changed = compare_orders(model, torch.arange(3), [2, 1, 0], positions=False)
    share = changed.difference / changed.largest
    right, wrong = nearest_choice(
        share, {"The same vector": 0.0, "About half of it": 0.5, "A very different vector": 1.0}
    )
    return Question(
        prompt="A layer without a mask and without positions reads “dog bites man” and then “man "
        "bites dog”. What's its output for “dog” the second time?",
        right=right,
        wrong=wrong,
        explanation="The layer adds up the same keys and values, just in a different order. In a "
        "small "
        f"random model the largest change is {format_number(changed.difference, '.1e')}, while the "
        f"numbers go up to {changed.largest:.2f}.",
    )


def _same_product() -> Question:
    products = sinusoids(64).products
    asked = float(products[3, 8])
    pairs = {"20 and 25": (20, 25), "3 and 9": (3, 9), "6 and 16": (6, 16)}
    right, wrong = nearest_choice(
        asked, {name: float(products[pair]) for name, pair in pairs.items()}
    )
    return Question(
        prompt="Take the dot product of the sinusoidal vectors (64 columns) at positions 3 and 8. "
        "Which two other positions have the same dot product?",
        right=right,
        wrong=wrong,
        explanation=f"Only the distance matters. Positions 3 and 8 give {asked:.4f}. "
        + " ".join(f"Positions {name} give {products[pair]:.4f}." for name, pair in pairs.items()),
    )


def _fast_pair() -> Question:
    from pages.learn.position.experiment.context_extension import (
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
    right, wrong = nearest_choice(
        fast, {"Not at all": 1.0, "By a factor of 2": 2.0, "By a factor of 4": 4.0}
    )
    return Question(
        prompt="YaRN extends a model to texts 4 times as long as in training. By how much does it "
        "slow down the fastest pair?",
        right=right,
        wrong=wrong,
        explanation=f"YaRN divides the speed of the fastest pair by {fast:.2f} and that of the "
        "slowest "
        f"by {slow:.2f}. Linear scaling divides both by {float(plain[0] / linear[0]):.2f}. The "
        "fastest pair distinguishes neighbors, and the model has seen all its angles in training.",
    )
