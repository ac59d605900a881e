"""Section "Several tokens at once" of the page "Cheaper models"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from pages.learn.cheaper_models import charts
from serving import compute, models
from serving.cache import cached
from serving.limits import MAX_DRAFTED_TOKENS
from serving.runs import Run
from serving.token_text import inline_pieces, pieces
from ui.charts.show import show
from ui.export import source
from ui.text.isolated import isolated
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

if TYPE_CHECKING:
    from attention_core import KVCache

NAME = "Several tokens at once"
AHEAD = {1: "next", 2: "second next", 3: "third next"}
WITHIN = (1, 10, 100)
CODE = "pages/learn/cheaper_models/experiment/drafts.py"


@cached(key=lambda run: run.key)
def ranks(run: Run) -> pd.DataFrame:
    """Rank of the tokens that follow each position, by the model's prediction.

    Columns: `position`, `reads up to`, `mode` (of AHEAD), `true token`, `rank` (1: most likely).
    Raises: ValueError for a text of one token. Other errors: as in loading a model.
    """
    import torch

    from attention_core.analysis.residual_stream import logit_lens
    from pages.learn.cheaper_models.experiment import drafts

    labels = run.tokens.labels
    if len(labels) < 2:
        raise ValueError("A single token has no next token. Please type another word.")
    core = run.pretrained.core
    with compute.slot(), torch.inference_mode():
        last = run.state(core.config.n_layers)
        logits = logit_lens(core, last)[0]
        ids = torch.tensor(run.tokens.ids, device=logits.device)
        of_ahead = {ahead: drafts.ranks(logits, ids, ahead).tolist() for ahead in AHEAD}
    rows = [
        (position, labels[position], AHEAD[ahead], labels[position + ahead], rank)
        for ahead, ranked in of_ahead.items()
        for position, rank in enumerate(ranked)
    ]
    names = ["position", "reads up to", "which", "true token", "rank"]
    return pd.DataFrame(rows, columns=names)


def shares(ranked: pd.DataFrame) -> pd.DataFrame:
    """How often the true token is among the most likely, one row per AHEAD."""
    rows = []
    for which in AHEAD.values():
        of_it = ranked.loc[ranked["which"] == which, "rank"]
        if len(of_it):
            counts = [f"{int((of_it <= most).sum())} of {len(of_it)}" for most in WITHIN]
            rows.append([which, *counts])
    return pd.DataFrame(rows, columns=["true token", "top 1", "in the top 10", "in the top 100"])


@dataclass(frozen=True)
class DraftTexts:
    """A checked draft as text.

    drafted: n tokens. model_tokens: n + 1 tokens of the whole model. n_accepted: accepted drafted
    tokens. text: the text from this pass. is_same: whether the whole model generates the same text
    token by token.
    """

    drafted: tuple[str, ...]
    model_tokens: tuple[str, ...]
    n_accepted: int
    text: str
    is_same: bool

    @property
    def table(self) -> pd.DataFrame:
        """One row per drafted token, and one for the token after them."""
        fate = ["kept"] * self.n_accepted + ["replaced by the whole model's token"]
        fate += ["discarded"] * (len(self.model_tokens) - len(fate))
        return pd.DataFrame(
            {"draft": [*self.drafted, "(none)"], "whole model": self.model_tokens, "result": fate}
        )


@cached(key=lambda run, n_new: (run.key, n_new))
def token_by_token(run: Run, n_new: int) -> tuple[int, ...]:
    """Tokens that the whole model generates one by one after the text."""
    from attention_core import generate
    from pages.learn.cheaper_models.experiment import drafts

    core, ids, read = run.pretrained.core, run.tokens.ids, _text_cache(run)
    with compute.slot():
        cache = drafts.first_layers(core, read, core.config.n_layers, len(ids) + n_new)
        return tuple(generate(core, ids[read.length :], max_new_tokens=n_new, cache=cache))


@cached(key=lambda run: run.key, size=lambda cache: cache.nbytes)
def _text_cache(run: Run) -> KVCache:
    """The KV cache of the text, shared by all drafts."""
    import torch

    from pages.learn.cheaper_models.experiment import drafts

    model = run.pretrained
    with compute.slot(), torch.inference_mode():
        return drafts.cache_text(model.core, torch.tensor(run.tokens.ids, device=model.device))


@cached(key=lambda run, n_layers, n: (run.key, n_layers, n))
def draft(run: Run, n_layers: int, n_drafted: int) -> DraftTexts:
    """Draft tokens after the text and check them.

    Raises: ValueError if the context is too short for them.
    """
    import torch

    from pages.learn.cheaper_models.experiment import drafts

    model = run.pretrained
    tokenizer = model.tokenizer
    ids, read = torch.tensor(run.tokens.ids, device=model.device), _text_cache(run)
    with compute.slot(), torch.inference_mode():
        checked = drafts.draft(model.core, ids, n_layers, n_drafted, read)
    alone = token_by_token(run, len(checked.accepted))
    return DraftTexts(
        drafted=pieces(tokenizer, checked.drafted),
        model_tokens=pieces(tokenizer, checked.model_tokens),
        n_accepted=checked.n_accepted,
        text="".join(inline_pieces(tokenizer, checked.accepted)).removeprefix(" "),
        is_same=alone == checked.accepted,
    )


def notice(drafted: DraftTexts, n_layers: int, n_all: int) -> str:
    """Describe the result of the checking pass as plain text."""
    n_tokens = drafted.n_accepted + 1
    alone = "the same text" if drafted.is_same else "something else"
    cost = 1 + len(drafted.drafted) * n_layers / n_all
    return (
        f"One pass wrote {n_tokens} token{'s' if n_tokens > 1 else ''}: "
        f"“{isolated(drafted.text)}”. Token by token, the whole model writes {alone}. Drafting "
        f"and checking cost {cost:.1f} passes, so a real draft must be much cheaper."
    )


def draw(run: Run) -> None:
    """Draw the section."""
    st.markdown(
        "A model reads **all its weights to predict one token**. Its hidden state also contains "
        "information about later tokens."
    )
    ranked = ranks(run)
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.ranks_chart, ranked, run.tokens.labels, key="cheaper_models_ranks")
    with right:
        plain_table(shares(ranked), "How often the true token ranks near the top")
        st.markdown(
            "**Multi-token prediction** trains extra layers for this. DeepSeek-V3 drafts one extra "
            "token, and its authors report that 85 to 90% are accepted."
        )
    st.markdown(
        "A cheap **draft** proposes several tokens, and **one pass** of the whole model checks "
        "them. The tokens before the first mistake are kept, and the pass adds one more."
    )
    left, right = st.columns(2, gap="large")
    n_all = models.spec(run.model).n_layers
    with left, st.container(horizontal=True, gap="medium"):
        n_drafted = controls.number(
            "Drafted tokens", "cheaper_models_drafted", MAX_DRAFTED_TOKENS + 1, 3, minimum=1
        )
        n_layers = controls.number(
            "Draft layers",
            "cheaper_models_draft_layers",
            n_all + 1,
            n_all - max(n_all // 15, 1),
            minimum=1,
        )
    drafted = draft(run, n_layers, n_drafted)
    with left:
        plain_table(drafted.table, "The draft and the whole model's tokens")
        st.text(notice(drafted, n_layers, n_all))
    with right:
        acceptance = linked(
            st.slider,
            "Probability p that a drafted token is right",
            0.0,
            0.95,
            0.85,
            0.05,
            key="cheaper_models_acceptance",
        )
        show(
            charts.expected_chart,
            expected(acceptance),
            n_drafted,
            key="cheaper_models_expected",
        )
    with st.expander("The code"):
        source.show(CODE, "ranks")
        source.show(CODE, "expected_tokens")
        source.show(CODE, "draft")


def expected(acceptance: float) -> pd.DataFrame:
    """Expected tokens per pass: columns `drafted`, `tokens`."""
    from pages.learn.cheaper_models.experiment.drafts import expected_tokens

    numbers = range(MAX_DRAFTED_TOKENS + 1)
    tokens = [expected_tokens(acceptance, number) for number in numbers]
    return pd.DataFrame({"drafted": numbers, "tokens": tokens})
