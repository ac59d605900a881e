"""Scores and losses by training step for "How a head came to be", with findings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.compare.heads import statistics
from pretrained.history import FEW, MANY, MARGIN, REPEATED_WORD_SCORES, TEXT_SCORES, History
from serving.heads import HeadId

STRONG = 0.3  # share of the weight above which a head counts as specialized
WHERE = {
    "previous": "the token before",
    "next": "the token after",
    "first": "the first token",
    "same": "other positions of the same token",
    "induction": "what followed the same word the first time",
    "duplicate": "the same word in the first copy",
}
OF_TRAINING, HELD_OUT = "in training", "on other books"


@dataclass(frozen=True)
class StepScore:
    """A head at a stored step (`number` is the step's index), and its score."""

    number: int
    head: HeadId
    value: float


def titles() -> dict[str, str]:
    """Title of each score by name, as in the table of all heads."""
    by_name = {statistic.name: statistic.title for statistic in statistics.definitions()}
    return {name: by_name[name] for name in (*TEXT_SCORES, *REPEATED_WORD_SCORES)}


def scores(history: History, text: int) -> dict[str, np.ndarray]:
    """All scores available for the model and text, by name: (N, L, H)."""
    of_text, said_twice = history.probes[text].scores, history.repeated_scores
    results = {name: of_text[:, i] for i, name in enumerate(TEXT_SCORES)}
    results |= {name: said_twice[:, i] for i, name in enumerate(REPEATED_WORD_SCORES)}
    return {name: values for name, values in results.items() if not np.isnan(values).all()}


def by_step(history: History, text: int, head: HeadId | None) -> pd.DataFrame:
    """Rows of `step`, `score`, `value` and `head`, for one head or the best at each step."""
    rows = []
    called = titles()
    for name, values in scores(history, text).items():
        for number, step in enumerate(history.steps.tolist()):
            which = strongest_at(values, number).head if head is None else head
            value = float(values[number, which.layer, which.head])
            rows.append((step, called[name], value, str(which)))
    return pd.DataFrame(rows, columns=["step", "score", "value", "head"])


def losses(history: History) -> pd.DataFrame:
    """Rows of `step`, `loss of` and `loss`, from the training curve and the stored steps."""
    curve = history.curve
    parts = [
        _rows(curve["step"], OF_TRAINING, curve["train_loss"]),
        _rows(
            np.concatenate([history.steps, curve["step"]]),
            HELD_OUT,
            np.concatenate([history.losses["held_out"], curve["held_out_loss"]]),
        ),
        *(
            _rows(history.steps, f"after {name.removeprefix('after_')} tokens", loss)
            for name, loss in history.losses.items()
            if name != "held_out"
        ),
    ]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.drop_duplicates(["step", "loss of"])


def _rows(steps: np.ndarray, of: str, loss: np.ndarray) -> pd.DataFrame:
    measurements = ~np.isnan(loss)
    return pd.DataFrame({"step": steps[measurements], "loss of": of, "loss": loss[measurements]})


def table(history: History, text: int, head: HeadId) -> pd.DataFrame:
    """One row per stored step: tokens read, the scores of a head, and the losses."""
    columns: dict[str, np.ndarray] = {"step": history.steps, "tokens read": history.tokens}
    called = titles()
    for name, values in scores(history, text).items():
        columns[f"{head} {called[name].lower()}"] = values[:, head.layer, head.head]
    for name, loss in history.losses.items():
        if not np.isnan(loss).all():
            columns[f"loss {name.replace('_', ' ')}"] = loss
    return pd.DataFrame(columns)


def strongest_at(values: np.ndarray, number: int) -> StepScore:
    """The head with the largest score at a stored step. values: (N, L, H)."""
    layer, head = np.unravel_index(np.nanargmax(values[number]), values[number].shape)
    return StepScore(number, HeadId(int(layer), int(head)), float(values[number, layer, head]))


def first_strong_step(values: np.ndarray) -> StepScore | None:
    """The best head at the first stored step with a score above `STRONG`, or None."""
    above = (values > STRONG).any(axis=(1, 2))
    return strongest_at(values, int(np.argmax(above))) if above.any() else None


def first_head(history: History, text: int) -> HeadId:
    """The default head: the best previous-token head at the last step."""
    return strongest_at(scores(history, text)["previous"], len(history.steps) - 1).head


def notice(history: History, text: int) -> str:
    """Markdown that says what each head attends to, and from which step on."""
    result = scores(history, text)
    sentences = [
        _looks_sentence(history, result[name], name)
        for name in ("previous", "next", "induction")
        if name in result
    ]
    return " ".join([*sentences, _context_sentence(history)])


def _looks_sentence(history: History, values: np.ndarray, name: str) -> str:
    first, best = first_strong_step(values), _largest(values)
    last = f"**{best.head}** at step {history.steps[best.number]:,} ({best.value:.0%})"
    if first is None:
        return (
            f"No head gives more than {STRONG:.0%} of its weight to **{WHERE[name]}**; the "
            f"strongest is {last}."
        )
    begins = (
        f"The first head that gives more than {STRONG:.0%} of its weight to **{WHERE[name]}** is "
        f"**{first.head}** at step {history.steps[first.number]:,} ({first.value:.0%})"
    )
    return begins + (
        f"; the strongest is {last}." if best != first else ", which is also the strongest."
    )


def _largest(values: np.ndarray) -> StepScore:
    """The head with the largest score at any stored step."""
    number = int(np.nanargmax(np.nanmax(values.reshape(len(values), -1), axis=1)))
    return strongest_at(values, number)


def _context_sentence(history: History) -> str:
    few, many = history.losses[f"after_{FEW}"], history.losses[f"after_{MANY}"]
    if not history.causal:
        return "BERT reads the words on both sides, so its loss isn't split by earlier tokens."
    number = history.learns_from_context
    if number is not None:
        return (
            f"**In-context learning** begins at step {history.steps[number]:,}. From then on, the "
            f"loss of a token is at least {MARGIN} lower if {MANY} tokens come before it instead "
            f"of {FEW} (at that step, {many[number]:.2f} instead of {few[number]:.2f})."
        )
    both = np.flatnonzero(~np.isnan(many))
    if not len(both):
        return f"Training hasn't reached texts of {MANY} tokens yet."
    last = int(both[-1])
    sentence = (
        f"**In-context learning** doesn't begin in these steps. At the end, the loss of a token is "
        f"{many[last]:.2f} after {MANY} earlier tokens and {few[last]:.2f} after {FEW}; in-context "
        f"learning begins when this gap reaches {MARGIN}."
    )
    if first_strong_step(history.repeated_scores[:, 0]) is None:
        sentence += (
            " In larger models, it appears together with induction heads, which look for the token "
            "that followed the same word earlier "
            "([Olsson et al. 2022](https://arxiv.org/abs/2209.11895)). The page *Watch heads form* "
            "trains two layers that develop such heads."
        )
    return sentence


def text_lengths(history: History) -> str:
    """A sentence about the text lengths used in training, and how they affect the loss."""
    (_, first), *others = history.text_lengths.tolist()
    later = [f"{length} from step {step:,} on" for step, length in others]
    known = f"In training, texts had {first} tokens" + "".join(f", {part}" for part in later) + "."
    if not others:
        return known
    longest = others[-1][1]
    return (
        f"{known} The loss on other books is measured on texts of {longest} tokens, so at first "
        "most of their positions are new to the model. A dash means that training hadn't reached "
        "texts of that length."
    )
