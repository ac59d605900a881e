"""Quiz questions of the page "Who sets the weights", answered by a small random model."""

from __future__ import annotations

from serving.cache import cached
from ui.text.formatting import format_number
from ui.widgets.questions import Question, nearest_choice


@cached(key=lambda: "questions")
def questions() -> list[Question]:
    """Build three questions whose answers are computed with the page's functions."""
    import torch

    from attention_core import Transformer, llama_config
    from pages.learn.who_sets_the_weights.experiment import Training

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Transformer(
            llama_config(
                vocab_size=50,
                context_length=16,
                d_model=16,
                n_layers=2,
                n_heads=4,
                n_kv_heads=2,
                d_ff=24,
            )
        )
    ids = torch.arange(8)[None]
    training = Training(model, ids, 0.1)
    step = training.step()
    return [
        _guesses(len(step.before.losses), ids.shape[1]),
        _first_row(float(step.signal.score_gradients[:, :, 0].abs().max())),
        _change(training.changes()[0, "W_q"].change, step.gradients[0, "W_q"]),
    ]


def _guesses(n_losses: int, n_tokens: int) -> Question:
    right, wrong = nearest_choice(n_losses, {"1": 1, "7": 7, "8": 8})
    return Question(
        prompt=f"A decoder reads a text of {n_tokens} tokens in one training pass. How many "
        "predictions does its loss average?",
        right=right,
        wrong=wrong,
        explanation=f"It's {n_losses}, because every position except the last has a next token "
        "in the "
        "text.",
    )


def _first_row(largest: float) -> Question:
    right, wrong = nearest_choice(
        largest, {"0": 0.0, "the largest of all": 1.0, "the same as the loss's own, 1": 2.0}
    )
    return Question(
        prompt="The first token of a decoder can only attend to itself. What is the gradient of "
        "that "
        "score?",
        right=right,
        wrong=wrong,
        explanation="The weight is always 1, so changing the score doesn't change the loss. In a "
        f"random model, the largest such gradient is {format_number(largest, '.1g')}.",
    )


def _change(change: float, gradient: float) -> Question:
    right, wrong = nearest_choice(
        change / gradient,
        {"0.1 times as long": 0.1, "equally long": 1.0, "10 times as long": 10.0},
    )
    return Question(
        prompt="The learning rate is 0.1. How long is the change of a matrix after one step, "
        "compared "
        "to its gradient?",
        right=right,
        wrong=wrong,
        explanation=f"In a random model, the gradient of W_q in layer 0 has a length of "
        f"{format_number(gradient, '.4g')}, and a step changes the matrix by "
        f"{format_number(change, '.4g')}. "
        f"That's {change / gradient:.2f} times as much.",
    )
