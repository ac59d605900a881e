"""The model card of a trained model, every number of it measured: `python -m training.card gpt2`.

Writes README.md, curve.csv and curve.svg into the model's folder in `pretrained/checkpoints`.
"""

from __future__ import annotations

import argparse
import math
import shutil
from pathlib import Path

import torch

import pretrained
from attention_core import Sampling, generate
from attention_core.analysis.head_statistics import (
    STATISTICS,
    TextWeights,
    repeated_scores,
    repeated_sequence,
)
from pretrained.masked_word import masked_word_head
from pretrained.sources import TRAINED_HERE
from serving.heads import HeadId
from training.corpus import HELD_OUT
from training.evaluate import measured
from training.recipe import Kind, Recipe, recipe
from training.run import read_curve
from training.train import add_arguments

PROMPTS = ("The old house", "“I am afraid,” said", "She looked at the sea and")
SENTENCES = (
    "The captain of the [MASK] went on board.",
    "She took her [MASK] and went out of the room.",
    "He sat down in a [MASK] by the fire.",
)
# What the recipe does not say.
NOTES = {
    "gpt2": "",
    "bert": (
        "The run was taken up again once, at step 2,927, from the weights kept there and with a "
        "new state of the optimizer: texts of 512 tokens, which had come at the end, undid what "
        "the short ones had taught. So its context is 128 tokens. "
    ),
}
TEXT = (
    "The old man looked at the boy, and the boy looked at the old man. Then they went out of the "
    "house and down to the river."
)
HEADS_OF_A_TEXT = ("previous", "first", "next")  # `Statistic.name`
BEST = 3  # heads that are named for each score

TITLES = {"gpt2": "GPT-2 on novels", "bert": "BERT on novels"}
TRANSFORMERS = {"gpt2": "`GPT2LMHeadModel`", "bert": "`BertForMaskedLM`"}
TASKS = {
    "gpt2": "A token sees the tokens before it, and the model is asked for the next one.",
    "bert": "A token sees every token, and the model is asked for the ones that are masked.",
}


def heads_found(model: pretrained.Pretrained) -> list[str]:
    """A line for each score, with the heads that score highest."""
    tokens = model.tokenizer.encode(TEXT)
    ids = torch.tensor(tokens.ids)
    with torch.inference_mode():
        records = model.core(ids[None], record=True).records
    text = TextWeights(
        torch.stack([record.weights[0] for record in records]),
        ids,
        torch.tensor(tokens.special),
        model.core.config.causal,
    )
    scores = {
        statistic.title: statistic.measure(text)
        for statistic in STATISTICS
        if statistic.name in HEADS_OF_A_TEXT and statistic.measure is not None
    }
    vocabulary = range(256, model.core.config.vocab_size - 2)
    twice = repeated_scores(model.core, repeated_sequence(60, vocabulary, seed=0))
    scores |= {"Induction": twice.induction, "Duplicate token": twice.duplicate}
    lines = []
    for name, values in scores.items():
        best = values.flatten().argsort(descending=True)[:BEST].tolist()
        named = (
            f"{HeadId(*divmod(place, values.shape[1]))} {values.flatten()[place]:.2f}"
            for place in best
        )
        lines.append(f"| {name} | {', '.join(named)} |")
    return lines


def samples(model: pretrained.Pretrained) -> list[str]:
    """What GPT-2 writes on, or what BERT puts in the place of a mask."""
    if model.core.config.causal:
        return [f"- {prompt}**{_written_on(model, prompt)}**" for prompt in PROMPTS]
    return [f"- {sentence} **{_first_guesses(model, sentence)}**" for sentence in SENTENCES]


def _written_on(model: pretrained.Pretrained, prompt: str) -> str:
    ids = list(model.tokenizer.encode(prompt).ids)
    cache = model.core.new_cache(1, len(ids) + 60)
    new = generate(
        model.core,
        ids,
        max_new_tokens=60,
        cache=cache,
        sampling=Sampling(temperature=0.8, top_k=50, seed=0),
    )
    return " ".join(model.tokenizer.decode(new).split("\n")).rstrip()


@torch.inference_mode()
def _first_guesses(model: pretrained.Pretrained, sentence: str) -> str:
    tokens = model.tokenizer.encode(sentence)
    place = tokens.pieces.index("[MASK]")
    hidden = model.core(torch.tensor([tokens.ids])).hidden[0, place]
    shares = torch.softmax(masked_word_head(model)(hidden), dim=-1)
    best = shares.topk(3)
    return ", ".join(
        f"{model.tokenizer.decode([index]).strip()} {share:.0%}"
        for share, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    )


def curve_picture(lines: list[dict[str, str]]) -> str:
    """The losses by step as an SVG."""
    import altair as alt
    import pandas as pd
    import vl_convert

    rows = [
        {"tokens": int(line["tokens"]), "loss": float(line[column]), "books": books}
        for line in lines
        for column, books in (("train_loss", "trained on"), ("held_out_loss", "held out"))
        if line[column]
    ]
    chart = (
        alt.Chart(pd.DataFrame(rows), width=520, height=260)
        .mark_line()
        .encode(
            x=alt.X("tokens", title="tokens seen").scale(type="log"),
            y=alt.Y("loss", title="loss (nats a token)").scale(zero=False),
            color=alt.Color("books", title="books"),
        )
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def card(kind: Kind, how: Recipe, measures: dict[str, float], curve: list[dict[str, str]]) -> str:
    """The text of the card."""
    model = pretrained.load(f"{kind}-novels")
    sizes, last = how.model, curve[-1]
    other = "bert-novels" if kind == "gpt2" else "gpt2-novels"
    lengths = ", then ".join(
        f"{length} tokens" + f" (from {share:.0%} of the steps on)" * bool(share)
        for share, length in how.lengths
    )
    n_parameters = sum(weight.numel() for weight in model.core.parameters())
    of_others = (
        (other, "most frequent") if sizes.causal else (other, "unigram", "bigram", "trigram")
    )
    mine = [name for name in measures if not name.startswith(of_others)]
    expected = ""
    if sizes.causal:
        n_others = n_parameters - sizes.vocab_size * sizes.d_model
        perplexity = measures["gpt2-novels perplexity"]
        expected = _expected(n_others, int(last["tokens"]), perplexity) + "\n\n"
    asked = "" if sizes.causal else f" {how.masked:.0%} of the tokens are asked for."
    return f"""# {TITLES[kind]}

{TASKS[kind]}

Trained by this project with its own core, so that GPT-2 and BERT can be looked at side by side
where the published ones are not at hand. `{other}` has the same layers, heads, width, tokens and
books. It is not the published model, and far smaller: {n_parameters:,} numbers, {sizes.n_layers}
layers of {sizes.n_heads} heads, width {sizes.d_model}, context {sizes.context_length}.

It loads with `pretrained.load("{kind}-novels")`, and in transformers from this folder, with
{TRANSFORMERS[kind]} and `AutoTokenizer`.

## Data

A hundred English novels in the public domain
(https://github.com/computationalstylistics/100_english_novels), whose text is not part of this
repository. Not one line of these was in training:{_names()}.

The tokens are GPT-2's,
cut to the {sizes.vocab_size:,} that the other ninety novels use most (`training/vocabulary.py`).

## Recipe

`make train-{kind}` (`training/recipe.py`): {int(last["step"]):,} steps of {how.tokens_per_step:,}
tokens, {int(last["tokens"]) / 1e6:.1f} million in all. Texts have {lengths}.{asked}
AdamW with weight decay {how.weight_decay}, a rate that rises to {how.rate:g} in {how.warmup} steps
and falls along a cosine to {how.last_rate:g}, dropout {how.dropout} on what enters the first layer,
products in bfloat16 on a processor. {NOTES[kind]}The weights are stored in float16 and
used in float32.

![The loss by tokens seen](curve.svg)

The numbers behind the picture are in `curve.csv`.

## On held-out books

{expected}`python -m training.evaluate` gives:

| measure | value |
|---|---|
{chr(10).join(f"| {name} | {measures[name]:.4f} |" for name in mine)}

## What it writes

{chr(10).join(samples(model))}

## Heads

The three heads with the highest scores (`attention_core/analysis/head_statistics.py`).
Induction and duplicate token are measured on sixty random tokens said twice, the others on a
sentence in which phrases return.

| score | heads |
|---|---|
{chr(10).join(heads_found(model))}

## Limits

It knows the English of novels from 1839 to 1937, with the views of their time, and nothing else. It
is made to be looked into; what it writes has the sound of a novel and no sense.
"""


def _names() -> str:
    """The held-out books, a line for each five."""
    lines = (", ".join(HELD_OUT[n : n + 5]) for n in range(0, len(HELD_OUT), 5))
    return "\n" + ",\n".join(lines)


def _expected(n_parameters: int, n_tokens: int, perplexity: float) -> str:
    """The loss that Kaplan et al. 2020, equation 1.5, lead one to expect, as a sentence."""
    loss = ((8.8e13 / n_parameters) ** (0.076 / 0.095) + 5.4e13 / n_tokens) ** 0.095
    return (
        f"For a causal model of {n_parameters:,} numbers beside its table of tokens, trained\n"
        "on so many tokens, Kaplan et al. 2020 (https://arxiv.org/abs/2001.08361, equation 1.5)\n"
        f"expect {loss:.2f} nats a token, of web text and of GPT-2's whole vocabulary. Here they\n"
        f"are {math.log(perplexity):.2f}."
    )


def main() -> None:
    """Write the card of one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("gpt2", "bert"))
    add_arguments(parser)
    chosen = parser.parse_args()
    folder: Path = TRAINED_HERE / f"{chosen.kind}-novels"
    run = chosen.runs / chosen.kind
    curve = read_curve(run)
    shutil.copy(run / "curve.csv", folder / "curve.csv")
    (folder / "curve.svg").write_text(curve_picture(curve), "utf-8")
    measures = measured(chosen.corpus, chosen.runs)
    text = card(chosen.kind, recipe(chosen.kind), measures, curve)
    (folder / "README.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
