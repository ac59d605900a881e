"""The story of one pass: captions in plain words, each with its place in the picture and a lesson.

Every number in a caption comes from the tensors that the picture shows at that place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrained import ModelSpec
from pretrained.masked_word import has_masked_word_head
from serving import models, number_text
from serving.heads import HeadId
from serving.number_text import counted
from serving.one_pass import OnePass, OpenHead, OpenLayer, SwitchedRun
from serving.pass_lessons import Subject, address

SAYS_OF_A_HEAD = (
    "A row is a token. In q, k, v and context a column is one number of the head's vectors; in "
    "scores and weights it is a token that is looked at."
)
STEPS = ("q", "k", "v", "scores", "scaled", "weights", "context", "out_weight", "added")


def length(norm: float) -> str:
    """The length of a vector in words: three digits, and no powers of ten where it is large."""
    return f"{norm:,.0f}" if norm >= 100 else f"{norm:.3g}"


@dataclass(frozen=True)
class Caption:
    """One stop of the story.

    level, matrix: how far the picture is walked into there, and which step of the head is read at
    [row, column]. lesson: which of `pass_lessons.LESSONS` teaches it.
    """

    title: str
    text: str
    level: str
    lesson: str
    matrix: str = "weights"
    row: int = 0
    column: int = 0


@dataclass(frozen=True)
class Told:
    """What the story is about: a pass, and the layer, head and pair of tokens that it looks at."""

    spec: ModelSpec
    passed: OnePass
    layer: OpenLayer
    head: OpenHead
    query: int
    key: int

    @property
    def off(self) -> tuple[str, ...]:
        """The parts that are switched off, by their names in `one_pass.switched_off`."""
        run = self.passed.run
        return run.off if isinstance(run, SwitchedRun) else ()

    @property
    def is_pre_norm(self) -> bool:
        """Whether layers norm what they read, and not their sums."""
        return models.get(self.spec.name).core.config.norm_order == "pre"

    @property
    def has_bias(self) -> bool:
        """Whether attention adds a learned bias to what its heads add."""
        return models.get(self.spec.name).core.config.attention_bias

    @property
    def has_feed_forward_bias(self) -> bool:
        """Whether the feed-forward network adds a learned bias to what its neurons write."""
        return models.get(self.spec.name).core.config.mlp_bias

    @property
    def guesses_words(self) -> bool:
        """Whether it is an encoder that comes with its head for masked words."""
        return has_masked_word_head(models.get(self.spec.name))

    def label(self, token: int) -> str:
        """A token in quotation marks."""
        return f"“{self.passed.run.tokens.labels[token]}”"


def captions(told: Told) -> list[Caption]:
    """The story from the text to the next token; of an encoder, to a vector a token."""
    return [*_into_the_model(told), *_through_a_head(told), *_out_of_the_model(told)]


def _into_the_model(told: Told) -> list[Caption]:
    passed, spec = told.passed, told.spec
    n_tokens, width = len(passed.run.tokens), passed.run.tensors.states.shape[-1]
    position = (
        "A second vector, learned for each position, is added to the token's own."
        if passed.position is not None
        else "Every head turns its queries and keys by an angle that grows with the position."
    )
    norms = passed.state_norms[:, told.query]
    each = (
        "Each layer adds something to the vector, which may also cancel a part of what is there."
        if told.is_pre_norm
        else "Each layer adds something to the vector, and a norm sets the length of the sum."
    )
    return [
        Caption(
            "Your text becomes tokens",
            f"A model reads no letters. Your text was cut into {counted(n_tokens, 'token')}, each "
            "an entry of a fixed vocabulary. Every ribbon of this picture follows one of them.",
            "whole",
            "tokens",
        ),
        Caption(
            "A token becomes a vector",
            f"For each token the model looks up a row of {width} numbers, learned in training. The "
            "strip shows the first 16 of them. Words of a similar use have similar vectors.",
            "whole",
            "similarity",
        ),
        Caption(
            "The order is told",
            "Attention compares any two tokens and does not ask where they stand. So the model is "
            f"told. {position}",
            "whole",
            "position",
        ),
        Caption(
            "The vector travels through all layers",
            f"{each} The ribbon is wider where the vector is longer (on a logarithmic scale). "
            f"{told.label(told.query)} goes in {length(norms[0])} long and comes out "
            f"{length(norms[-1])} long, after {spec.n_layers} layers.",
            "whole",
            "stream",
        ),
        Caption(
            "Inside a layer, tokens read from each other",
            f"This is layer {told.layer.layer}. Its {spec.n_heads} heads look at the text in "
            f"{spec.n_heads} ways at the same time; each tile shows who looks at whom.",
            "layer",
            "heads",
        ),
    ]


def _through_a_head(told: Told) -> list[Caption]:
    head, query, key = told.head, told.query, told.key
    size = head.q.shape[1]
    seen = int(np.isfinite(head.scaled[query]).sum())
    asks, offers = told.label(query), told.label(key)
    hidden = (
        f" {asks} may see {seen} of the tokens; what comes later gets minus infinity."
        if told.passed.run.causal
        else " Nothing is hidden: the mask is switched off."
        if told.spec.role == "decoder"
        else " Nothing is hidden here: this model may look both ways."
    )
    divided = (
        f"Scores are not divided here, as that is switched off: {head.scaled[query, key]:.3g}."
        if "scale" in told.off
        else f"Scores are divided by √{size}, so that they do not grow with the size of the head: "
        f"{head.scaled[query, key]:.3g}."
    )
    is_off = str(HeadId(head.layer, head.head)) in told.off
    handed_over = (
        "This head is switched off: it hands over zeros."
        if is_off
        else f"With these shares the values are added up: what {asks} takes home is mostly what "
        "the tokens with large weights hand over."
    )
    this_adds = "adds nothing" if is_off else f"adds one of length {head.added_norms[query]:.3g}"
    bias = " and a learned bias" if told.has_bias else ""
    return [
        Caption(
            "A question, an offer, something to hand over",
            f"From each vector a head makes three short ones of {size} numbers: a query (what am I "
            "looking for?), a key (what do I offer?) and a value (what do I hand over?).",
            "head",
            "split",
            "q",
            query,
        ),
        Caption(
            "How well do they fit?",
            f"The query of {asks} times the key of {offers}, number by number, added up: "
            f"{head.scores[query, key]:.3g}. Every pair of tokens gets such a score.",
            "matrix",
            "scores",
            "scores",
            query,
            key,
        ),
        Caption(
            "Divided, and masked",
            f"{divided}{hidden}",
            "matrix",
            "scaling",
            "scaled",
            query,
            key,
        ),
        Caption(
            "Scores become shares",
            "The softmax makes all numbers of a row positive and lets them add up to 1. "
            f"{asks} gives {head.weights[query, key]:.1%} of its attention to {offers}.",
            "matrix",
            "masking",
            "weights",
            query,
            key,
        ),
        Caption(
            "Values are mixed",
            handed_over,
            "matrix",
            "context",
            "context",
            query,
        ),
        Caption(
            "The result is added to the vector",
            f"W_O turns the {size} numbers back into a long vector. This head {this_adds} to "
            f"{asks}; all heads{bias} together add {told.layer.norms['attention'][query]:.3g}.",
            "matrix",
            "output",
            "added",
            query,
        ),
    ]


def _out_of_the_model(told: Told) -> list[Caption]:
    passed, spec, query = told.passed, told.spec, told.query
    strongest, written = int(told.layer.neurons[query, 0]), told.layer.written[query, 0]
    bias = " and of a learned bias" if told.has_feed_forward_bias else ""
    adds = (
        "It is switched off in this layer and adds nothing."
        if f"F{told.layer.layer}" in told.off
        else f"At {told.label(query)} it adds a vector of length "
        f"{told.layer.norms['mlp_output'][query]:.3g}. That is a sum of what all its neurons write"
        f"{bias}; the longest piece, {written:.3g}, is written by neuron {strongest}."
    )
    feed_forward = Caption(
        "Then each token works on its own",
        f"The feed-forward network reads one vector at a time. {adds}",
        "layer",
        "layer",
    )
    if passed.next_token is None:
        return [
            feed_forward,
            Caption(
                "A vector for every token",
                f"After {spec.n_layers} layers every token has a vector that knows its sentence. "
                + (
                    "It was trained to guess hidden words from these vectors."
                    if told.guesses_words
                    else "This model predicts nothing: its vectors are compared, searched and "
                    "sorted."
                ),
                "whole",
                "word pairs",
            ),
        ]
    probability = float(passed.guess_probabilities[-1])
    return [
        feed_forward,
        Caption(
            f"The same, {spec.n_layers} times",
            "Every layer has weights of its own. Under each of them stands what the model would "
            "say if it had to stop there.",
            "whole",
            "lens",
        ),
        Caption(
            "The last token speaks",
            "The last token's vector is compared with every token of the vocabulary. The likeliest "
            f"to come next is “{passed.guesses[-1]}”, with a probability of "
            f"{number_text.written(probability, '.1%')}.",
            "whole",
            "next token",
        ),
        Caption(
            "And again",
            "That token is written behind the text, and everything begins anew with one token "
            "more. Keys and values of the old ones need not be made again: that is the KV cache.",
            "whole",
            "cache",
        ),
    ]


def opened(picture: str, told: Told) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A layer, one of its heads and their story, as `ui.canvas.one_pass.opened` hands them over."""
    layer, head = told.layer, told.head
    subject = Subject(
        told.passed.run.tokens.text,
        told.passed.run.model,
        layer.layer,
        head.head,
        query=told.query,
    )
    header = {
        "says": SAYS_OF_A_HEAD,
        "picture": picture,
        "layer": layer.layer,
        "head": head.head,
        "scale": head.scale,
        "captions": story(told, lambda lesson: address(lesson, subject)),
    }
    steps = {name: getattr(head, name) for name in STEPS}
    return header, steps | of_layer(layer)


def story(told: Told, lesson: Callable[[str], str]) -> list[dict[str, Any]]:
    """The captions as the picture tells them. `lesson`: the address of a lesson."""
    return [
        {
            "title": caption.title,
            "text": caption.text,
            "level": caption.level,
            "layer": told.layer.layer,
            "head": told.head.head,
            "matrix": caption.matrix,
            "row": caption.row,
            "column": caption.column,
            "token": told.query,
            "href": lesson(caption.lesson),
        }
        for caption in captions(told)
    ]


def of_layer(layer: OpenLayer) -> dict[str, np.ndarray]:
    """What the picture shows of an open layer, whichever head is open in it."""
    return {
        **{f"strip {name}": strip for name, strip in layer.strips.items()},
        **{f"norm {name}": norm for name, norm in layer.norms.items()},
        **{
            "neurons": layer.neurons,
            "activations": layer.activations,
            "written": layer.written,
        },
    }
