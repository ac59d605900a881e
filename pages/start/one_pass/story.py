"""The tour of one pass: captions, each with its location in the picture and a lesson.

Every number in a caption comes from the tensors that the picture shows at that location.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pages.start.one_pass.lessons import Subject, address
from pretrained import ModelSpec
from pretrained.masked_word import has_masked_word_head
from serving import models
from serving.flow import compute_flow
from serving.heads import HeadId
from serving.one_pass import AblatedRun, HeadDetail, LayerDetail, OnePass
from ui.text import formatting
from ui.text.formatting import plural

HEAD_MESSAGES = (
    "Each row is a token. In q, k, v and context, columns are the entries of the head's vectors. "
    "In scores and weights, they're the tokens that the row can look at."
)
STEPS = ("q", "k", "v", "scores", "scaled", "weights", "context", "out_weight", "added")


def length(norm: float) -> str:
    """Format a vector's length with three digits, without exponents for large values."""
    return f"{norm:,.0f}" if norm >= 100 else f"{norm:.3g}"


@dataclass(frozen=True)
class Caption:
    """One step of the tour.

    level, matrix: the open level, and the head's matrix that is read at [row, column]. lesson: a
    key of `lessons.LESSONS`. is_highlighted: whether the curve of the tour's token pair is
    highlighted.
    """

    title: str
    text: str
    level: str
    lesson: str
    matrix: str = "weights"
    row: int = 0
    column: int = 0
    is_highlighted: bool = False


@dataclass(frozen=True)
class StoryContext:
    """The subject of the tour: a pass, and a layer, head and pair of tokens in it."""

    spec: ModelSpec
    passed: OnePass
    layer: LayerDetail
    head: HeadDetail
    query: int
    key: int

    @property
    def off(self) -> tuple[str, ...]:
        """Names of the switched-off parts, as in `one_pass.switched_off`."""
        run = self.passed.run
        return run.off if isinstance(run, AblatedRun) else ()

    @property
    def is_pre_norm(self) -> bool:
        """Whether layers normalize their inputs (pre-norm) instead of their sums."""
        return models.get(self.spec.name).core.config.norm_order == "pre"

    @property
    def has_bias(self) -> bool:
        """Whether attention has an output bias."""
        return models.get(self.spec.name).core.config.attention_bias

    @property
    def has_feed_forward_bias(self) -> bool:
        """Whether the feed-forward network has an output bias."""
        return models.get(self.spec.name).core.config.mlp_bias

    @property
    def guesses_words(self) -> bool:
        """Whether it's an encoder with a masked-word head."""
        return has_masked_word_head(models.get(self.spec.name))

    def label(self, token: int) -> str:
        """A token in quotation marks."""
        return f"“{self.passed.run.tokens.labels[token]}”"


def captions(context: StoryContext) -> list[Caption]:
    """The tour from the text to the next token or, for an encoder, to its vectors."""
    return [*_input_captions(context), *_head_captions(context), *_output_captions(context)]


def _input_captions(context: StoryContext) -> list[Caption]:
    passed, spec = context.passed, context.spec
    n_tokens, width = len(passed.run.tokens), passed.run.tensors.states.shape[-1]
    position = (
        "So each head rotates its queries and keys by an angle that grows with the position."
        if models.get(spec.name).core.config.positions == "rotary"
        else "So a second vector, learned for each position, is added to the token's own."
    )
    return [
        Caption(
            "Your text becomes tokens",
            "The model doesn't read letters. Your text is cut into "
            f"{plural(n_tokens, 'token')}, each an entry of a fixed vocabulary. Every line in "
            "this picture belongs to one of them.",
            "whole",
            "tokens",
        ),
        Caption(
            "Each token becomes a vector",
            f"For each token the model looks up {width} numbers that it learned in training. This "
            f"vector travels along the line, from layer to layer, {spec.n_layers} times.",
            "whole",
            "similarity",
        ),
        Caption(
            "How the model knows the word order",
            "Attention compares two tokens wherever they are, so it can't see their order. "
            f"{position}",
            "whole",
            "position",
        ),
        Caption(
            "Words pass on information",
            "A curve shows what one word passes to another. Thicker curves matter more. "
            f"{_edge_sentence(context)}",
            "whole",
            "stream",
            row=context.query,
            column=context.key,
            is_highlighted=True,
        ),
        Caption(
            "Every layer has several heads",
            f"This is layer {context.layer.layer}. Its {plural(spec.n_heads, 'head')} read the "
            "text at the same time, each in its own way. Each tile is the attention of one head; "
            "rows look at columns.",
            "layer",
            "heads",
        ),
    ]


def _edge_sentence(context: StoryContext) -> str:
    """A sentence about the key's share of the query's update in this layer."""
    flow = compute_flow(context.passed.run)
    at = np.flatnonzero(
        (flow.edges[:, :3] == (context.layer.layer, context.query, context.key)).all(axis=1)
    )
    if not len(at):
        return "Thin curves are hidden until you choose to show more."
    share = formatting.percent(float(flow.edges[at[0], 3]))
    return (
        f"In layer {context.layer.layer}, {share} of the update of "
        f"{context.label(context.query)} comes "
        f"from {context.label(context.key)}."
    )


def _head_captions(context: StoryContext) -> list[Caption]:
    head, query, key = context.head, context.query, context.key
    size = head.q.shape[1]
    looks, visible = context.label(query), context.label(key)
    is_off = str(HeadId(head.layer, head.head)) in context.off
    mixed = (
        "This head is switched off, so it passes on zeros."
        if is_off
        else "Each value is multiplied by its weight, and all are added up. So the words with the "
        f"largest weights decide what {looks} takes in."
    )
    this_adds = (
        "adds nothing" if is_off else f"adds a vector of length {head.added_norms[query]:.3g}"
    )
    bias = " and a learned bias" if context.has_bias else ""
    return [
        Caption(
            "A query, a key and a value",
            f"From each vector the head makes three short ones of {size} numbers: a query (what am "
            "I looking for?), a key (what do I offer?) and a value (what do I pass on?).",
            "head",
            "split",
            "q",
            query,
        ),
        Caption(
            "How well do they match?",
            f"Multiply the query of {looks} by the key of {visible}, number by number, and add up: "
            f"{head.scores[query, key]:.3g}. Every pair of tokens gets such a score.",
            "matrix",
            "scores",
            "scores",
            query,
            key,
        ),
        Caption(
            "Scale and mask", _scaling_sentence(context), "matrix", "scaling", "scaled", query, key
        ),
        Caption(
            "Scores become weights",
            _weight_sentence(context),
            "matrix",
            "masking",
            "weights",
            query,
            key,
        ),
        Caption("Mix the values", mixed, "matrix", "context", "context", query),
        Caption(
            "Add the result to the vector",
            f"The matrix W_O turns the {size} numbers back into a long vector. This head "
            f"{this_adds} to {looks}; all heads{bias} together add one of length "
            f"{context.layer.norms['attention'][query]:.3g}.",
            "matrix",
            "output",
            "added",
            query,
        ),
    ]


def _scaling_sentence(context: StoryContext) -> str:
    head, query, key = context.head, context.query, context.key
    score = f"{head.scaled[query, key]:.3g}"
    divided = (
        f"The score isn't divided, because scaling is switched off: {score}."
        if "scale" in context.off
        else f"The score is divided by √{head.q.shape[1]}, so that it doesn't grow with the size "
        f"of the head: {score}."
    )
    if not context.passed.run.causal:
        off = context.spec.role == "decoder"
        return f"{divided} " + (
            "Nothing is hidden, because the mask is switched off."
            if off
            else "Nothing is hidden here: this model can look both ways."
        )
    visible = int(np.isfinite(head.scaled[query]).sum())
    return (
        f"{divided} {context.label(query)} can see {plural(visible, 'token')}; later ones get a "
        "score of minus infinity."
    )


def _weight_sentence(context: StoryContext) -> str:
    """A sentence about the pair's weight, and where most of the rest goes."""
    weights, query, key = context.head.weights[context.query], context.query, context.key
    text = (
        "Softmax turns every row into positive numbers that add up to 1. "
        f"{context.label(query)} gives {formatting.percent(float(weights[key]))} of its attention "
        f"to {context.label(key)}."
    )
    other = int(np.where(np.arange(len(weights)) == key, -1.0, weights).argmax())
    if other == key or weights[other] < 0.1:
        return text
    rests = " Heads with nothing to add often look there." if other == 0 and key != 0 else ""
    share = formatting.percent(float(weights[other]))
    return f"{text} Another {share} goes to {context.label(other)}.{rests}"


def _output_captions(context: StoryContext) -> list[Caption]:
    passed, spec, query = context.passed, context.spec, context.query
    neuron, written = int(context.layer.neurons[query, 0]), context.layer.neuron_norms[query, 0]
    bias = " and a learned bias" if context.has_feed_forward_bias else ""
    adds = (
        "It's switched off in this layer and adds nothing."
        if f"F{context.layer.layer}" in context.off
        else f"To {context.label(query)} it adds a vector of length "
        f"{context.layer.norms['mlp_output'][query]:.3g}: the sum of its neurons' outputs"
        f"{bias}. Neuron {neuron} contributes the longest vector, {written:.3g}."
    )
    feed_forward = Caption(
        "Then every token works on its own",
        f"The feed-forward network, a dot on each line, reads one vector at a time. {adds}",
        "layer",
        "layer",
    )
    if passed.next_token is None:
        ending = (
            "The model was trained to guess hidden words from these vectors."
            if context.guesses_words
            else "This model predicts nothing. Its vectors are compared, searched and sorted."
        )
        return [
            feed_forward,
            Caption(
                "A vector for every token",
                f"After {spec.n_layers} layers, every token's vector reflects its whole sentence. "
                f"{ending}",
                "whole",
                "word pairs",
            ),
        ]
    likeliest = passed.next_token.tokens[0].strip()
    probability = formatting.percent(float(passed.guess_probabilities[-1]))
    return [
        feed_forward,
        Caption(
            f"All {spec.n_layers} layers do the same",
            "Every layer has its own weights. Point at the number of a layer to read what the "
            "model would predict if it stopped there.",
            "whole",
            "lens",
        ),
        Caption(
            "The last token predicts",
            "The final vector of the last token is compared with every entry of the vocabulary. "
            f"“{likeliest}” comes next with a probability of {probability}.",
            "whole",
            "next token",
        ),
        Caption(
            "Then it starts over",
            "The chosen token is added to the text, and the model runs again. The keys and "
            "values of the earlier tokens stay the same, so the KV cache keeps them.",
            "whole",
            "cache",
        ),
    ]


def open_layer_data(
    picture: str, context: StoryContext
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A layer, one of its heads and its captions, in the format of `ui.canvas.one_pass`."""
    layer, head = context.layer, context.head
    subject = Subject(
        context.passed.run.tokens.text,
        context.passed.run.model,
        layer.layer,
        head.head,
        query=context.query,
    )
    header = {
        "says": HEAD_MESSAGES,
        "picture": picture,
        "layer": layer.layer,
        "head": head.head,
        "scale": head.scale,
        "captions": story(context, lambda lesson: address(lesson, subject)),
    }
    steps = {name: getattr(head, name) for name in STEPS}
    return header, steps | layer_data(layer)


def story(context: StoryContext, lesson: Callable[[str], str]) -> list[dict[str, Any]]:
    """The captions in the picture's format. lesson: returns the URL of a lesson."""
    return [
        {
            "title": caption.title,
            "text": caption.text,
            "level": caption.level,
            "layer": context.layer.layer,
            "head": context.head.head,
            "matrix": caption.matrix,
            "row": caption.row,
            "column": caption.column,
            "token": context.query,
            "lit": caption.is_highlighted,
            "href": lesson(caption.lesson),
        }
        for caption in captions(context)
    ]


def layer_data(layer: LayerDetail) -> dict[str, np.ndarray]:
    """The arrays of an open layer, which don't depend on the open head."""
    return {
        **{f"strip {name}": strip for name, strip in layer.strips.items()},
        **{f"norm {name}": norm for name, norm in layer.norms.items()},
        **{
            "neurons": layer.neurons,
            "activations": layer.activations,
            "written": layer.neuron_norms,
        },
    }
