"""The questions of the page "Who sets the weights", answered by small random models."""

from __future__ import annotations

from serving.cache import cached
from ui.text.number_text import written
from ui.widgets.questions import Question, nearest


@cached(key=lambda: "questions")
def questions() -> list[Question]:
    """Three questions; what is right is computed by the functions of the page."""
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
        _change(training.moved()[0, "W_q"].change, step.gradients[0, "W_q"]),
    ]


def _guesses(n_losses: int, n_tokens: int) -> Question:
    right, wrong = nearest(n_losses, {"1": 1, "7": 7, "8": 8})
    return Question(
        ask=f"A decoder reads a text of {n_tokens} tokens in one pass of training. How many "
        "guesses are in its loss?",
        right=right,
        wrong=wrong,
        because=f"A random core gives {n_losses} losses: every position but the last has a next "
        "token in the text.",
    )


def _first_row(largest: float) -> Question:
    right, wrong = nearest(
        largest, {"0": 0.0, "the largest of all": 1.0, "that of the loss, 1": 2.0}
    )
    return Question(
        ask="The first token of a decoder may look at itself alone. What is the gradient of that "
        "score?",
        right=right,
        wrong=wrong,
        because=f"The largest of all heads is {written(largest, '.1g')}: its weight is 1 "
        "whatever the score is, so no change of the score changes the loss.",
    )


def _change(change: float, gradient: float) -> Question:
    right, wrong = nearest(
        change / gradient, {"0.1 times as long": 0.1, "as long": 1.0, "10 times as long": 10.0}
    )
    return Question(
        ask="The learning rate is 0.1. How long is the change of a matrix after one step, compared "
        "with its gradient?",
        right=right,
        wrong=wrong,
        because=f"W_q of layer 0 in a random core: a change of {written(change, '.4g')} for a "
        f"gradient of {written(gradient, '.4g')}, which is {change / gradient:.2f} times.",
    )
