"""Write the model card of a trained model: `python -m training.card gpt2`.

Every number in it is measured. Writes README.md, curve.csv and curve.svg to the model's folder in
`pretrained/checkpoints`.
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
from training.evaluate import evaluate
from training.recipe import Kind, Recipe, recipe
from training.run import read_curve
from training.train import add_arguments

PROMPTS = ("The old house", "“I am afraid,” said", "She looked at the sea and")
SENTENCES = (
    "The captain of the [MASK] went on board.",
    "She took her [MASK] and went out of the room.",
    "He sat down in a [MASK] by the fire.",
)
# Facts that the recipe doesn't contain.
NOTES = {
    "gpt2": "",
    "bert": (
        "The run was restarted at step 2,927 with a new optimizer state, because training on "
        "texts of 512 tokens at the end had undone what the model learned from the short ones. "
        "That's why the context is 128 tokens. "
    ),
}
TEXT = (
    "The old man looked at the boy, and the boy looked at the old man. Then they went out of the "
    "house and down to the river."
)
TEXT_HEADS = ("previous", "first", "next")  # `Statistic.name`
BEST = 3  # heads to list per score

TITLES = {"gpt2": "GPT-2 on novels", "bert": "BERT on novels"}
TRANSFORMERS = {"gpt2": "`GPT2LMHeadModel`", "bert": "`BertForMaskedLM`"}
LIMITS = {
    "gpt2": (
        "The model has only seen novels from 1839 to 1937, so it writes the English of that time\n"
        "and reflects its views. It's meant to be studied: its text sounds like a novel but\n"
        "makes no sense."
    ),
    "bert": (
        "The model has only seen novels from 1839 to 1937, so it only knows the English of that\n"
        "time and reflects its views. It's meant to be studied, not to predict accurately."
    ),
}
TASKS = {
    "gpt2": "Each token sees the tokens before it, and the model predicts the next one.",
    "bert": "Each token sees all tokens, and the model predicts the masked ones.",
}


def best_heads(model: pretrained.Pretrained) -> list[str]:
    """A table row for each score, with the highest-scoring heads."""
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
        if statistic.name in TEXT_HEADS and statistic.measure is not None
    }
    vocabulary = range(256, model.core.config.vocab_size - 2)
    twice = repeated_scores(model.core, repeated_sequence(60, vocabulary, seed=0))
    scores |= {"Induction": twice.induction, "Duplicate token": twice.duplicate}
    lines = []
    for name, values in scores.items():
        best = values.flatten().argsort(descending=True)[:BEST].tolist()
        if not values.isfinite().all():  # causal models can't attend to the next token
            continue
        by_name = (
            f"{HeadId(*divmod(place, values.shape[1]))} {values.flatten()[place]:.2f}"
            for place in best
        )
        lines.append(f"| {name} | {', '.join(by_name)} |")
    return lines


def samples(model: pretrained.Pretrained) -> list[str]:
    """Sample continuations of GPT-2, or BERT's predictions for a masked word."""
    if model.core.config.causal:
        return [f"- {prompt}**{_continuation(model, prompt)}**" for prompt in PROMPTS]
    return [f"- {sentence} **{_first_guesses(model, sentence)}**" for sentence in SENTENCES]


def _continuation(model: pretrained.Pretrained, prompt: str) -> str:
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
            y=alt.Y("loss", title="loss (nats per token)").scale(zero=False),
            color=alt.Color("books", title="books"),
        )
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def card(kind: Kind, how: Recipe, measures: dict[str, float], curve: list[dict[str, str]]) -> str:
    """The text of the model card."""
    model = pretrained.load(f"{kind}-novels")
    sizes, last = how.model, curve[-1]
    other = "bert-novels" if kind == "gpt2" else "gpt2-novels"
    lengths = ", then ".join(
        f"{length} tokens" + f" (after {share:.0%} of the steps)" * bool(share)
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
    total = int(last["tokens"]) / 1e6
    masked = "" if sizes.causal else f"\n- {how.masked:.0%} of the tokens are masked"
    return f"""# {TITLES[kind]}

{TASKS[kind]}

We trained this model with this project's own core, so that you can compare GPT-2 and BERT without
downloading the published ones. `{other}` has the same number of layers
and heads, the same width, and the same tokenizer, and it was trained on the same books. Both models
are much smaller than the published ones. This one has {n_parameters:,} parameters:
{sizes.n_layers} layers of {sizes.n_heads} heads, a width of {sizes.d_model}, and a context of
{sizes.context_length} tokens.

Load it with `pretrained.load("{kind}-novels")`. In transformers, load this folder with
{TRANSFORMERS[kind]} and `AutoTokenizer`.

## Data

The model was trained on 90 of
[100 English novels](https://github.com/computationalstylistics/100_english_novels) in the public
domain. Their text isn't part of this repository. These ten novels were held out:{_names()}.

The tokenizer is GPT-2's, reduced to the {sizes.vocab_size:,} tokens that are most frequent in the
90 training novels (`training/vocabulary.py`).

## Recipe

`make train-{kind}` trains the model (`training/recipe.py`).

- {int(last["step"]):,} steps of {how.tokens_per_step:,} tokens, {total:.1f} million in total
- Texts of {lengths}{masked}
- AdamW with weight decay {how.weight_decay}
- Learning rate: {how.warmup} warmup steps to {how.rate:g}, then cosine decay to {how.last_rate:.5f}
- Dropout {how.dropout} on the input of the first layer
- Matrix products in bfloat16 on a CPU

{NOTES[kind]}The weights are stored in float16 and used in float32.

![Loss by number of training tokens](curve.svg)

The chart's data is in `curve.csv`.

## On held-out books

{expected}Results of `python -m training.evaluate`:

| measure | value |
|---|---|
{chr(10).join(f"| {name} | {measures[name]:.4f} |" for name in mine)}

## Sample output

{chr(10).join(samples(model))}

## Heads

These are the three heads with the highest value of each score
(`attention_core/analysis/head_statistics.py`). Induction and duplicate-token scores use a sequence
of 60 random tokens that is repeated once. The other scores use a text with repeated phrases.

| score | heads |
|---|---|
{chr(10).join(best_heads(model))}

## Limits

{LIMITS[kind]}
"""


def _names() -> str:
    """The held-out books, five per line."""
    lines = (", ".join(HELD_OUT[n : n + 5]) for n in range(0, len(HELD_OUT), 5))
    return "\n" + ",\n".join(lines)


def _expected(n_parameters: int, n_tokens: int, perplexity: float) -> str:
    """A sentence with the loss predicted by Kaplan et al. 2020, equation 1.5."""
    loss = ((8.8e13 / n_parameters) ** (0.076 / 0.095) + 5.4e13 / n_tokens) ** 0.095
    return (
        f"The loss is {math.log(perplexity):.2f} nats per token. For a causal model with\n"
        f"{n_parameters:,} parameters, not counting its token embedding, and this number of\n"
        "training tokens, equation 1.5 of [Kaplan et al. 2020](https://arxiv.org/abs/2001.08361)\n"
        f"predicts {loss:.2f}, but for web text and GPT-2's full vocabulary."
    )


def main() -> None:
    """Write the card of one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("gpt2", "bert"))
    add_arguments(parser)
    args = parser.parse_args()
    folder: Path = TRAINED_HERE / f"{args.kind}-novels"
    run = args.runs / args.kind
    curve = read_curve(run)
    shutil.copy(run / "curve.csv", folder / "curve.csv")
    (folder / "curve.svg").write_text(curve_picture(curve), "utf-8")
    measures = evaluate(args.corpus, args.runs)
    text = card(args.kind, recipe(args.kind), measures, curve)
    (folder / "README.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
