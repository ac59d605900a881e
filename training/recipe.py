"""Training recipes of the two models: sizes, steps and learning rates.

Both models have the same number of layers and heads, the same width and the same vocabulary, and
they're trained on the same books. They differ in what a token can see (earlier tokens, or all
tokens), in what they predict (the next token, or a masked one), and in their architecture: BERT has
post-norm layers and a head for masked words.
Sources: Radford et al. 2019 (GPT-2); Devlin et al. 2018, https://arxiv.org/abs/1810.04805.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from attention_core import TransformerConfig, bert_config, gpt2_config
from training.vocabulary import SIZE

Kind = Literal["gpt2", "bert"]


@dataclass(frozen=True)
class Recipe:
    """Sizes, lengths and rates of one training run.

    A step uses `tokens_per_step` tokens, processed in parts that fit in memory. `lengths` has the
    number of tokens per text, and the share of the steps from which it applies. Short texts are
    cheaper, and it's easier to find neighbors in them. BERT's paper also starts with them.
    Raises: ValueError for texts longer than the model's context, or if the parts don't fit evenly.
    """

    model: TransformerConfig
    steps: int
    lengths: tuple[tuple[float, int], ...] = ((0.0, 512),)
    tokens_per_step: int = 4096
    tokens_per_part: int = 4096
    rate: float = 1.5e-3
    last_rate: float = 5e-5
    warmup: int = 200
    weight_decay: float = 0.1
    dropout: float = 0.05
    masked: float = 0.2  # share of tokens that BERT predicts
    bfloat16: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Check that the sizes fit together."""
        if self.tokens_per_step % self.tokens_per_part:
            raise ValueError(
                f"{self.tokens_per_step} tokens per step aren't a multiple of the part size "
                f"{self.tokens_per_part}"
            )
        for _, length in self.lengths:
            if length > self.model.context_length:
                raise ValueError(
                    f"texts of {length} tokens exceed the context of {self.model.context_length}"
                )
            if self.tokens_per_part % length:
                raise ValueError(
                    f"{self.tokens_per_part} tokens aren't a multiple of the text length {length}"
                )

    @property
    def length(self) -> int:
        """Number of tokens per text at the end of training and in evaluation."""
        return self.lengths[-1][1]

    def length_at(self, step: int) -> int:
        """Number of tokens per text at this step."""
        return [length for share, length in self.lengths if share * self.steps <= step][-1]

    def rate_at(self, step: int) -> float:
        """The learning rate: linear warmup, then cosine decay."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        share = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.last_rate + (self.rate - self.last_rate) * (1 + math.cos(math.pi * share)) / 2


def recipe(kind: Kind, steps: int | None = None) -> Recipe:
    """The recipe of `gpt2-novels` or `bert-novels`; `steps` overrides the step count."""
    if kind == "gpt2":
        model = gpt2_config(d_model=256, n_layers=6, n_heads=8, vocab_size=SIZE, context_length=512)
        return Recipe(model, steps or 4600, lengths=((0.0, 64), (0.1, 256), (0.8, 512)))
    model = bert_config(
        d_model=256, n_layers=6, n_heads=8, vocab_size=SIZE, context_length=128, n_segments=1
    )
    return Recipe(
        model,
        steps or 4600,
        lengths=((0.0, 32), (0.3, 128)),
        rate=1e-3,
        warmup=500,
    )


def smoke_recipe(recipe: Recipe, steps: int = 1000) -> Recipe:
    """A small recipe, two layers of four heads and short texts, to train in a minute."""
    model = replace(recipe.model, n_layers=2, n_heads=4, d_model=64, d_ff=256, context_length=64)
    return replace(
        recipe,
        model=model,
        steps=steps,
        lengths=((0.0, 64),),
        tokens_per_step=2048,
        tokens_per_part=2048,
        rate=3e-3,
        warmup=20,
    )
