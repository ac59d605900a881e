"""The part "Rewards" of the page "Cheaper models": continuations, marked by a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from serving import compute, models
from serving.cache import cached
from serving.limits import (
    MAX_CHEAPER_TOKENS,
    MAX_CONTINUATIONS,
    MAX_CONTINUED_TOKENS,
    MAX_RULE_CHARACTERS,
    OverLimit,
)
from serving.prompts import prepare
from serving.runs import Run
from serving.token_text import decode, in_line, pieces
from ui.charts import style
from ui.charts.bars import bars
from ui.charts.show import show
from ui.export import source
from ui.text.isolated import isolated
from ui.text.number_text import written
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.progress import Report, Reporter, watched
from ui.widgets.run_form import run_form
from ui.widgets.settings import settings

if TYPE_CHECKING:
    from pretrained import Tokenizer

NAME = "Rewards"
RUN, SAMPLE = "cheaper_models_run", "Sample"
N_PUSHED = 8  # tokens that are pushed most, up or down
CODE = "pages/learn/cheaper_models/experiment/rewards.py"


@dataclass(frozen=True)
class RewardSettings:
    """The model, the text, how many continuations are sampled, and from which seed."""

    model: str
    text: str
    n_continuations: int
    seed: int


@dataclass(frozen=True)
class Continuation:
    """A sampled continuation.

    line: the text on one line, with what is invisible made visible, except spaces. mean_log_p: of
    its tokens, by the model, natural logarithm.
    """

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    text: str
    line: str
    mean_log_p: float


def _key(settings: RewardSettings, report: Report | None = None) -> tuple[object, ...]:
    return (*models.key(settings.model), settings)


@cached(key=_key)
def sample(settings: RewardSettings, report: Report | None = None) -> tuple[Continuation, ...]:
    """Sample continuations of a text at temperature 1, all at once, kept for all visitors.

    report: gets the number of finished passes; it may abandon the run by raising an error.
    Raises: OverLimit for too many continuations or a text that is too long, ValueError for one
    without a token, and what loading a model raises.
    """
    from attention_core import Hooks, Sampling, stream_batch

    n = settings.n_continuations
    if not 2 <= n <= MAX_CONTINUATIONS:
        raise OverLimit(f"Choose 2 to {MAX_CONTINUATIONS} continuations, not {n}.")
    model = models.get(settings.model)
    prompt = prepare(model, settings.text, MAX_CHEAPER_TOKENS, "this lesson", MAX_CONTINUED_TOKENS)
    reporter = Reporter(report)
    passes = stream_batch(
        model.core,
        [prompt.ids] * n,
        max_new_tokens=prompt.n_new,
        sampling=[
            Sampling(temperature=1.0, seed=settings.seed * MAX_CONTINUATIONS + number)
            for number in range(n)
        ],
        stop_ids=model.tokenizer.end_ids,
        hooks=Hooks(before_layer=reporter.layer),
    )
    written: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for steps in compute.steps(passes):
        for tokens, step in zip(written, steps, strict=True):
            if step is not None:
                tokens.append((step.token_id, step.logprob))
        reporter.unit()
    return tuple(_continuation(model.tokenizer, tokens) for tokens in written)


def _continuation(tokenizer: Tokenizer, tokens: list[tuple[int, float]]) -> Continuation:
    ids = tuple(token for token, _ in tokens)
    mean = sum(logprob for _, logprob in tokens) / len(tokens)
    line = "".join(in_line(tokenizer, ids))
    return Continuation(ids, pieces(tokenizer, ids), decode(tokenizer, ids), line, mean)


def twice(continuation: Continuation) -> str:
    """The first token that stands in a continuation for the second time; a dash if none does."""
    seen: set[int] = set()
    for token, piece in zip(continuation.ids, continuation.pieces, strict=True):
        if token in seen:
            return isolated(piece)
        seen.add(token)
    return "–"


def rewarded(sampled: tuple[Continuation, ...], rule: str, word: str) -> pd.DataFrame:
    """The continuations with their rewards and advantages."""
    from pages.learn.cheaper_models.experiment import rewards

    marks = [rewards.reward(rule, of.ids, of.text, word) for of in sampled]
    return pd.DataFrame(
        {
            "": range(len(sampled)),
            "continuation": [of.line for of in sampled],
            "reward": marks,
            "advantage": rewards.advantages(marks),
            "mean log p": [of.mean_log_p for of in sampled],
        }
    )


@dataclass(frozen=True)
class Push:
    """What a step would do at one sampled token.

    table: the tokens whose logits are pushed most, `label`, `value` (the push) and `colour`.
    probability: of the sampled token.
    """

    table: pd.DataFrame
    probability: float


@cached(key=lambda run, ids, place, advantage: (run.key, ids, place, advantage))
def push(run: Run, ids: tuple[int, ...], place: int, advantage: float) -> Push:
    """The push on the logits at token `place` of a continuation `ids` of the text of a run."""
    import torch

    from pages.learn.cheaper_models.experiment.rewards import gradient

    model = run.pretrained
    before = torch.tensor([[*run.tokens.ids, *ids[:place]]], device=model.device)
    with compute.slot(), torch.inference_mode():
        logits = model.core(before, last_only=True).logits[0, -1].float().cpu()
        pushed = -gradient(logits, ids[place], advantage)
    largest = pushed.abs().topk(N_PUSHED).indices.tolist()
    signed = {token: float(pushed[token]) for token in largest}
    ordered = sorted(signed, key=lambda token: -signed[token])
    return Push(
        table=pd.DataFrame(
            {
                "label": pieces(model.tokenizer, ordered),
                "value": [signed[token] for token in ordered],
                "colour": [style.ORANGE if signed[t] > 0 else style.BLUE for t in ordered],
            }
        ),
        probability=float(logits.softmax(-1)[ids[place]]),
    )


def notice(token: str, probability: float, advantage: float) -> str:
    """What the push does to the sampled token, as plain text."""
    # as they are shown, so that the product is right for whoever computes it anew
    advantage = round(advantage, 3)
    moved = advantage * (1 - round(probability, 3))
    chance = written(probability, ".3f")
    return (
        f"“{isolated(token)}” had a probability of {chance}. A step of rate 1 moves its "
        f"logit by {written(advantage, '.3f')} × (1 − {chance}) = "
        f"{written(moved, '+.3f')}, and each other one by {written(-advantage, '.3f')} × its own "
        "probability."
    )


def draw(run: Run) -> None:
    """The part of the page."""
    from pages.learn.cheaper_models.experiment.rewards import (
        HAS_WORD,
        NO_TOKEN_TWICE,
        RULES,
    )

    st.markdown(
        "To learn from texts, somebody must write the right ones. A **rule** needs no writer: the "
        "model writes, and the rule marks each text 0 or 1."
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        rule = linked(
            st.segmented_control,
            "The rule: a continuation has …",
            RULES,
            default=RULES[0],
            required=True,
            key="cheaper_models_rule",
        )
        # of use with one rule only, and there with all, so that nothing moves when the rule changes
        word = linked(
            st.text_input,
            "The word",
            "the",
            key="cheaper_models_word",
            max_chars=MAX_RULE_CHARACTERS,
            disabled=rule != HAS_WORD,
            width=200,
        )
        keys = "cheaper_models_continuations", "cheaper_models_seed"
        with settings(), run_form(RUN, *keys, verb=SAMPLE):
            n = linked(
                st.slider,
                "Continuations",
                2,
                MAX_CONTINUATIONS,
                6,
                key="cheaper_models_continuations",
                width=140,
            )
            seed = controls.seed("Seed", "cheaper_models_seed", 0)
    chosen = RewardSettings(run.model, run.tokens.text, n, seed)
    sampled = watched(
        RUN,
        chosen,
        lambda report: sample(chosen, report),
        kept=sample.is_cached(chosen),
        total=MAX_CONTINUED_TOKENS,
        unit="passes",
        done=lambda result: f"Sampled {len(result)} continuations at temperature 1.",
        verb=SAMPLE,
    )
    if sampled is None:
        return
    table = rewarded(sampled, rule, word)
    if rule == NO_TOKEN_TWICE:
        table.insert(2, "token that comes again", [twice(of) for of in sampled])
    forms = {"reward": "{:.0f}", "advantage": "{:+.2f}", "mean log p": "{:.2f}"}
    plain_table(table, "Continuations and their rewards", forms)
    st.markdown(
        "**Advantage**: the reward less the mean, divided by the group's spread. Above 0 a text "
        "becomes likelier. No weight is changed here."
    )
    if not table["advantage"].any():
        st.info(
            "All rewards are equal, so every advantage is 0 and nothing is learnt. Choose another "
            "rule or word, or sample again with another seed."
        )
    else:
        _show_push(run, sampled, table["advantage"].tolist())
    with st.expander("The code"):
        source.show(CODE, "advantages")
        source.show(CODE, "gradient")


def _show_push(run: Run, sampled: tuple[Continuation, ...], advantages: list[float]) -> None:
    """The push at a token of a continuation, both chosen by the visitor."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        number = controls.number("Continuation", "cheaper_models_continuation", len(sampled), 0)
        chosen = sampled[number]
        place = controls.number("Its token", "cheaper_models_token", len(chosen.ids), 0)
        pushed = push(run, chosen.ids, place, advantages[number])
        st.text(notice(chosen.pieces[place], pushed.probability, advantages[number]))
    with right:
        show(bars, pushed.table, "push on the logit", of="token", key="cheaper_models_push")
