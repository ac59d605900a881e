"""Quiz questions of the page "One pass", answered by the models on this machine."""

from __future__ import annotations

import numpy as np

from pages.start.one_pass.learned_parts import count_parameters
from pages.start.one_pass.story import length
from serving import models
from serving.one_pass import OnePass
from ui.widgets.questions import Question, nearest_choice

GROWTH = {
    "about as long": 1.0,
    "about 10 times as long": 10.0,
    "about 70 times as long": 70.0,
    "about 300 times as long": 300.0,
    "about 2,000 times as long": 2000.0,
}


def questions(one_pass: OnePass, token: int) -> tuple[Question, ...]:
    """Up to three questions about the pass that the page shows."""
    asked = (
        _first_question(one_pass),
        _length_question(one_pass, token),
        _learned_question(one_pass),
    )
    return tuple(filter(None, asked))


def _first_question(one_pass: OnePass) -> Question:
    """Ask which tokens the first token can attend to: with a causal mask, only itself."""
    run = one_pass.run
    others = float(1 - run.weights[:, :, 0, 0].mean())
    alone = others < 1e-6
    choices = "Only from itself", "From all tokens"
    n_layers, n_heads = run.weights.shape[:2]
    return Question(
        prompt=f"Attention lets a token read from other tokens. Which tokens can the first token "
        "of a "
        f"text read from in {run.title}?",
        right=choices[not alone],
        wrong=(choices[alone], "From the token after it"),
        explanation=f"Averaged over all {n_layers * n_heads} heads, it gives {others:.1%} of its "
        f"attention to other tokens. {'A decoder hides all later tokens.' if run.causal else ''}",
    )


def _length_question(one_pass: OnePass, token: int) -> Question | None:
    norms = one_pass.state_norms[:, token]
    if not (norms[0] and norms[-1]):  # a zero vector has no growth factor
        return None
    growth = float(norms[-1] / norms[0])
    right, wrong = nearest_choice(
        float(np.log(growth)), {k: float(np.log(v)) for k, v in GROWTH.items()}
    )
    adds = one_pass.run.pretrained.core.config.norm_order == "pre"
    return Question(
        prompt=f"{'Layers only add to the vector of a token. ' if adds else ''}How long is the "
        "selected token's vector after the last layer, compared with the vector that entered the "
        "first layer?",
        right=right,
        wrong=wrong,
        explanation=f"Its length grows from {length(norms[0])} to {length(norms[-1])}, a factor of "
        f"{length(growth)}."
        if growth >= 1
        else f"Its length shrinks from {length(norms[0])} to {length(norms[-1])}, a factor of "
        f"{length(growth)}.",
    )


def _learned_question(one_pass: OnePass) -> Question:
    numbers = count_parameters(one_pass.run.model)
    feed_forward = numbers.count("feed-forward")
    attention = numbers.count("attention")
    more = "The feed-forward networks", "The attention heads"
    return Question(
        prompt=f"Which part of {models.spec(one_pass.run.model).title}'s layers has more learned "
        "parameters?",
        right=more[feed_forward < attention],
        wrong=(more[feed_forward >= attention], "Both have the same number"),
        explanation=f"Of {numbers.total:,} parameters, the feed-forward networks have "
        f"{feed_forward:,} and the attention heads have {attention:,}.",
    )
