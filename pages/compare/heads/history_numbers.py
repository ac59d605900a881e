"""Scores and losses by training step for "How a head came to be", with findings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pages.compare.heads import statistics
from pretrained.history import FEW, MANY, MARGIN, OF_A_TEXT, OF_WORDS_SAID_TWICE, History
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
class Found:
    """A head at a stored step (`number` is the step's index), and its score."""

    number: int
    head: HeadId
    value: float


def titles() -> dict[str, str]:
    """Title of each score by name, as in the table of all heads."""
    named = {statistic.name: statistic.title for statistic in statistics.definitions()}
    return {name: named[name] for name in (*OF_A_TEXT, *OF_WORDS_SAID_TWICE)}


def scores(kept: History, text: int) -> dict[str, np.ndarray]:
    """All scores available for the model and text, by name: (N, L, H)."""
    of_text, said_twice = kept.probes[text].scores, kept.said_twice
    found = {name: of_text[:, i] for i, name in enumerate(OF_A_TEXT)}
    found |= {name: said_twice[:, i] for i, name in enumerate(OF_WORDS_SAID_TWICE)}
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def by_step(kept: History, text: int, head: HeadId | None) -> pd.DataFrame:
    """Rows of `step`, `score`, `value` and `head`, for one head or the best at each step."""
    rows = []
    called = titles()
    for name, values in scores(kept, text).items():
        for number, step in enumerate(kept.steps.tolist()):
            which = strongest(values, number).head if head is None else head
            value = float(values[number, which.layer, which.head])
            rows.append((step, called[name], value, str(which)))
    return pd.DataFrame(rows, columns=["step", "score", "value", "head"])


def losses(kept: History) -> pd.DataFrame:
    """Rows of `step`, `loss of` and `loss`, from the training curve and the stored steps."""
    curve = kept.curve
    parts = [
        _rows(curve["step"], OF_TRAINING, curve["train_loss"]),
        _rows(
            np.concatenate([kept.steps, curve["step"]]),
            HELD_OUT,
            np.concatenate([kept.losses["held_out"], curve["held_out_loss"]]),
        ),
        *(
            _rows(kept.steps, f"after {name.removeprefix('after_')} tokens", loss)
            for name, loss in kept.losses.items()
            if name != "held_out"
        ),
    ]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.drop_duplicates(["step", "loss of"])


def _rows(steps: np.ndarray, of: str, loss: np.ndarray) -> pd.DataFrame:
    measured = ~np.isnan(loss)
    return pd.DataFrame({"step": steps[measured], "loss of": of, "loss": loss[measured]})


def table(kept: History, text: int, head: HeadId) -> pd.DataFrame:
    """One row per stored step: tokens read, the scores of a head, and the losses."""
    columns: dict[str, np.ndarray] = {"step": kept.steps, "tokens read": kept.tokens}
    called = titles()
    for name, values in scores(kept, text).items():
        columns[f"{head} {called[name].lower()}"] = values[:, head.layer, head.head]
    for name, loss in kept.losses.items():
        if not np.isnan(loss).all():
            columns[f"loss {name.replace('_', ' ')}"] = loss
    return pd.DataFrame(columns)


def strongest(values: np.ndarray, number: int) -> Found:
    """The head with the largest score at a stored step. values: (N, L, H)."""
    layer, head = np.unravel_index(np.nanargmax(values[number]), values[number].shape)
    return Found(number, HeadId(int(layer), int(head)), float(values[number, layer, head]))


def first_strong(values: np.ndarray) -> Found | None:
    """The best head at the first stored step with a score above `STRONG`, or None."""
    above = (values > STRONG).any(axis=(1, 2))
    return strongest(values, int(np.argmax(above))) if above.any() else None


def first_head(kept: History, text: int) -> HeadId:
    """The default head: the best previous-token head at the last step."""
    return strongest(scores(kept, text)["previous"], len(kept.steps) - 1).head


def notice(kept: History, text: int) -> str:
    """Markdown that says which heads look where, and from which step on."""
    found = scores(kept, text)
    sentences = [
        _looks(kept, found[name], name)
        for name in ("previous", "next", "induction")
        if name in found
    ]
    return " ".join([*sentences, _context(kept)])


def _looks(kept: History, values: np.ndarray, name: str) -> str:
    first, best = first_strong(values), _largest(values)
    last = f"**{best.head}** at step {kept.steps[best.number]:,} ({best.value:.0%})"
    if first is None:
        return (
            f"No head gives more than {STRONG:.0%} of its weight to **{WHERE[name]}**; the "
            f"strongest is {last}."
        )
    begins = (
        f"The first head that gives more than {STRONG:.0%} of its weight to **{WHERE[name]}** is "
        f"**{first.head}** at step {kept.steps[first.number]:,} ({first.value:.0%})"
    )
    return begins + (
        f"; the strongest is {last}." if best != first else ", which is also the strongest."
    )


def _largest(values: np.ndarray) -> Found:
    """The head with the largest score at any stored step."""
    number = int(np.nanargmax(np.nanmax(values.reshape(len(values), -1), axis=1)))
    return strongest(values, number)


def _context(kept: History) -> str:
    few, many = kept.losses[f"after_{FEW}"], kept.losses[f"after_{MANY}"]
    if not kept.causal:
        return "BERT reads the words on both sides, so its loss isn't split by earlier tokens."
    number = kept.learns_from_context
    if number is not None:
        return (
            f"**In-context learning** begins at step {kept.steps[number]:,}. From then on, the "
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
    if first_strong(kept.said_twice[:, 0]) is None:
        sentence += (
            " In larger models, it appears together with induction heads, which look for the token "
            "that followed the same word earlier "
            "([Olsson et al. 2022](https://arxiv.org/abs/2209.11895)). The page *Watch heads form* "
            "trains two layers that develop such heads."
        )
    return sentence


def text_lengths(kept: History) -> str:
    """A sentence about the text lengths used in training, and how they affect the loss."""
    (_, first), *others = kept.text_lengths.tolist()
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
