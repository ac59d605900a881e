"""Quiz questions of the page "Cheaper models"."""

from __future__ import annotations

from serving.cache import cached
from ui.widgets.questions import Question, nearest_choice


@cached(key=lambda: "cheaper_models")
def questions() -> list[Question]:
    """Three questions: savings of experts, value of a draft, and equal rewards."""
    return [_experts(), _draft(), _rewards()]


def _experts() -> Question:
    from attention_core import llama_config
    from pages.learn.cheaper_models.experiment.experts import multiplications

    config = llama_config(
        vocab_size=100,
        context_length=16,
        d_model=576,
        n_layers=1,
        n_heads=9,
        n_kv_heads=3,
        d_ff=1536,
    )
    whole, few, _ = multiplications(config, 16, 2)
    right, wrong = nearest_choice(
        few / whole, {"1 of 2": 1 / 2, "1 of 8": 1 / 8, "1 of 16": 1 / 16}
    )
    return Question(
        prompt="An MLP is split into 16 experts, and each token uses 2 of them. What fraction of "
        "the "
        "MLP's multiplications is left?",
        right=right,
        wrong=wrong,
        explanation=f"With the sizes of SmolLM2 each token needs {few:,} of {whole:,} "
        "multiplications. "
        "The number of stored weights stays the same.",
    )


def _draft() -> Question:
    from pages.learn.cheaper_models.experiment.drafts import expected_tokens

    value = expected_tokens(0.5, 3)
    right, wrong = nearest_choice(value, {"1.5": 1.5, "1.875": 1.875, "2.5": 2.5, "4": 4.0})
    return Question(
        prompt="Three tokens are drafted, and each is right with probability 0.5. How many tokens "
        "does one pass of the whole model produce on average?",
        right=right,
        wrong=wrong,
        explanation=f"1 + 0.5 + 0.25 + 0.125 = {value:.3f}. The pass always adds one token of "
        "its own, "
        "and a drafted token counts only if all drafted tokens before it were right.",
    )


def _rewards() -> Question:
    from pages.learn.cheaper_models.experiment.rewards import advantages

    first, *_ = advantages([1.0] * 4)
    right, wrong = nearest_choice(
        first, {"Nothing": 0.0, "It becomes more likely": 1.0, "It becomes less likely": -1.0}
    )
    return Question(
        prompt="All four continuations follow the rule and get a reward of 1. What does a training "
        "step do to the first one?",
        right=right,
        wrong=wrong,
        explanation=f"Its advantage is {first:.0f} because every reward equals the mean. So the "
        "gradient of each of its tokens is zero.",
    )
