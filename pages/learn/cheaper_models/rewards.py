"""Section "Rewards" of the page "Cheaper models": continuations scored by a rule."""

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
from serving.prompts import prepare_prompt
from serving.runs import Run
from serving.token_text import decode, inline_pieces, pieces
from ui.charts import style
from ui.charts.bars import bars
from ui.charts.show import show
from ui.export import source
from ui.text.formatting import format_number
from ui.text.isolated import isolated
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.progress import Report, Reporter, run_with_progress
from ui.widgets.run_form import run_form
from ui.widgets.settings import settings

if TYPE_CHECKING:
    from pretrained import Tokenizer

NAME = "Rewards"
RUN, SAMPLE = "cheaper_models_run", "Sample"
N_PUSHED = 8  # tokens shown: those with the largest push, up or down
CODE = "pages/learn/cheaper_models/experiment/rewards.py"


@dataclass(frozen=True)
class RewardSettings:
    """Model, text, number of continuations, and seed."""

    model: str
    text: str
    n_continuations: int
    seed: int


@dataclass(frozen=True)
class Continuation:
    """A sampled continuation.

    line: the text on one line, with invisible characters other than spaces made visible.
    mean_log_p: mean natural log-probability of its tokens.
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
    """Sample continuations of a text in one batch at temperature 1.

    The result is cached for all visitors. report: receives the number of finished passes, and may
    cancel the run by raising an error.
    Raises: OverLimit for too many continuations or a text that is too long, ValueError for a text
    without tokens. Other errors: as in loading a model.
    """
    from attention_core import Hooks, Sampling, stream_batch

    n = settings.n_continuations
    if not 2 <= n <= MAX_CONTINUATIONS:
        raise OverLimit(f"Choose 2 to {MAX_CONTINUATIONS} continuations, not {n}.")
    model = models.get(settings.model)
    prompt = prepare_prompt(
        model, settings.text, MAX_CHEAPER_TOKENS, "this lesson", MAX_CONTINUED_TOKENS
    )
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
    line = "".join(inline_pieces(tokenizer, ids))
    return Continuation(ids, pieces(tokenizer, ids), decode(tokenizer, ids), line, mean)


def first_repeat(continuation: Continuation) -> str:
    """The first repeated token of a continuation, or a dash if none is repeated."""
    visible: set[int] = set()
    for token, piece in zip(continuation.ids, continuation.pieces, strict=True):
        if token in visible:
            return isolated(piece)
        visible.add(token)
    return "–"


def reward_table(sampled: tuple[Continuation, ...], rule: str, word: str) -> pd.DataFrame:
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
    """How a training step would change the logits at one sampled token.

    table: tokens with the largest changes (`label`, `value`, `colour`). probability: the sampled
    token's.
    """

    table: pd.DataFrame
    probability: float


@cached(key=lambda run, ids, place, advantage: (run.key, ids, place, advantage))
def push(run: Run, ids: tuple[int, ...], place: int, advantage: float) -> Push:
    """The logit changes at token `place` of the continuation `ids` of a run's text."""
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
    """Describe the change of the sampled token's logit as plain text."""
    # use the rounded numbers on screen, so that the product can be checked by hand
    advantage = round(advantage, 3)
    change = advantage * (1 - round(probability, 3))
    chance = format_number(probability, ".3f")
    return (
        f"“{isolated(token)}” had a probability of {chance}. A step with learning rate 1 changes "
        f"its logit by {format_number(advantage, '.3f')} × (1 − {chance}) = "
        f"{format_number(change, '+.3f')}, and each other logit by "
        f"{format_number(-advantage, '.3f')} × that "
        "token's probability."
    )


def draw(run: Run) -> None:
    """Draw the section."""
    from pages.learn.cheaper_models.experiment.rewards import (
        HAS_WORD,
        NO_TOKEN_TWICE,
        RULES,
    )

    st.markdown(
        "Examples usually come from people. With a **rule**, the model writes its own "
        "texts, and each one gets a reward of 0 or 1."
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        rule = linked(
            st.segmented_control,
            "Rule: the continuation has …",
            RULES,
            default=RULES[0],
            required=True,
            key="cheaper_models_rule",
        )
        # used by one rule only, but always shown so that the layout stays the same
        word = linked(
            st.text_input,
            "Required word",
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
    sampled = run_with_progress(
        RUN,
        chosen,
        lambda report: sample(chosen, report),
        cached=sample.is_cached(chosen),
        total=MAX_CONTINUED_TOKENS,
        unit="passes",
        done=lambda result: f"Sampled {len(result)} continuations at temperature 1.",
        verb=SAMPLE,
    )
    if sampled is None:
        return
    table = reward_table(sampled, rule, word)
    if rule == NO_TOKEN_TWICE:
        table.insert(2, "repeated token", [first_repeat(of) for of in sampled])
    forms = {"reward": "{:.0f}", "advantage": "{:+.2f}", "mean log p": "{:.2f}"}
    plain_table(table, "Continuations and their rewards", forms)
    st.markdown(
        "The **advantage** is the reward minus the group's mean, divided by its standard "
        "deviation. Training makes texts with a positive advantage more likely. No weights change "
        "here."
    )
    if not table["advantage"].any():
        st.info(
            "All rewards are equal, so every advantage is 0 and the model would learn nothing. "
            "Choose another rule or word, or sample again with another seed."
        )
    else:
        _show_push(run, sampled, table["advantage"].tolist())
    with st.expander("The code"):
        source.show(CODE, "advantages")
        source.show(CODE, "gradient")


def _show_push(run: Run, sampled: tuple[Continuation, ...], advantages: list[float]) -> None:
    """Show the logit changes at a chosen token of a chosen continuation."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        number = controls.number("Continuation", "cheaper_models_continuation", len(sampled), 0)
        chosen = sampled[number]
        place = controls.number("Token", "cheaper_models_token", len(chosen.ids), 0)
        pushed = push(run, chosen.ids, place, advantages[number])
        st.text(notice(chosen.pieces[place], pushed.probability, advantages[number]))
    with right:
        show(bars, pushed.table, "change of the logit", of="token", key="cheaper_models_push")
