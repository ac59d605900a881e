"""The shapes page: the eleven steps of multi-head attention, on the example or on a real layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ui import models
from ui.bounded import BoundedCache
from ui.limits import MAX_MAP_TOKENS, MAX_SMALL_TOKENS, OverLimit, check_text, check_tokens
from ui.quiz import Question
from ui.tensors import Panel

if TYPE_CHECKING:
    import torch

    from attention_core.shape_steps import Named, ShapeStep

LAST = 11
MOST_HEADS, MOST_WIDTH = 8, 16
# what is drawn of a real layer: tokens, heads, columns of each head, columns of each token
WINDOW_TOKENS, WINDOW_HEADS, WINDOW_COLUMNS = 6, 3, 8

_FILE, _ATTEND = "attention_core/shape_steps.py", "attention_core/attend.py"
_EXAMPLE = "multi_head_steps"
_LAYER = "layer_steps"

# The statements that made the tensors of each step: function's file, its name, texts in them.
_EXAMPLE_CODE = {
    1: ("d_in = x.shape",),
    2: ("columns = torch.arange",),
    3: ("matrices = [",),
    4: ("flat = (",),
    5: ("unrolled = [",),
    6: ("queries, keys, values = (",),
    7: ("scores = queries @",),
    8: ("masked = scores", "scaled = masked", "softmaxed = attention", "weights = nn."),
    9: ("context = weights @",),
    10: ("by_token = context",),
    11: ("merged = by_token", "output = attention"),
}
_LAYER_CODE = {
    1: ("x = block.attention_norm",),
    2: ("columns = torch.arange",),
    3: ("matrices = attention",),
    4: ("flat = attention",),
    5: ("unrolled = [",),
    6: ("queries, keys, values = (",),
    10: ("by_token = record",),
    11: ("merged = by_token", "output = attention"),
}


@dataclass(frozen=True)
class Walk:
    """The eleven steps and what is drawn of them.

    labels: the tokens of each sentence. shown: indices drawn along the axes "token", "head",
    "key/value head", "column" (of a head) and "wide column" (of the input or output); None draws
    everything. shared: whether keys have fewer heads than queries. layer: whether the steps are
    those of a real layer.
    """

    steps: tuple[ShapeStep, ...]
    labels: tuple[tuple[str, ...], ...]
    shown: dict[str, list[int]] | None = None
    shared: bool = False
    layer: bool = False
    rotary: bool = False

    def code(self, number: int) -> tuple[str, ...]:
        """Where the statements of a step are: arguments of `source.step`."""
        if not self.layer:
            return (_FILE, _EXAMPLE, *_EXAMPLE_CODE[number])
        if number == 7:
            return (_ATTEND, "attention_scores", "return q @")
        if number == 8:
            return (_ATTEND, "attend", "masked = ", "scaled = ", "attention = ", "weights = ")
        if number == 9:
            text = "return (rows @ v)" if self.shared else "return weights @ v"
            return (_ATTEND, "_mix_by_group", text)
        turn = ("queries, keys = rotate(",) if number == 6 and self.rotary else ()
        return (_FILE, _LAYER, *_LAYER_CODE[number], *turn)

    @property
    def palette(self) -> tuple[int, int]:
        """Rows and row width of the identities that the panels carry."""
        return len(self.labels) * len(self._tokens), len(self._columns)

    @property
    def _tokens(self) -> list[int]:
        everything = range(len(self.labels[0]))
        return list(everything) if self.shown is None else self.shown["token"]

    @property
    def _columns(self) -> list[int]:
        """The columns of the numbering that are drawn."""
        width = self.steps[0].width
        if self.shown is None:
            return list(range(width))
        head_dim = self.steps[1].tensors[0].shape[1]
        n_heads = self.steps[1].tensors[0].shape[0]
        starts = [head * head_dim for head in self.shown["head"]]
        if self.shared:
            starts += [(n_heads + head) * head_dim for head in self.shown["key/value head"]]
        return [start + i for start in starts for i in self.shown["column"]] + [width - 1]

    def before(self, number: int) -> list[Panel]:
        """The tensors that a step reads, as they were made."""
        return [self.panel(at, name) for at, name in self.steps[number - 1].made_from]

    def after(self, number: int) -> list[Panel]:
        """The tensors that a step makes."""
        return [self.panel(number, one.name) for one in self.steps[number - 1].tensors]

    def way(self) -> list[Panel]:
        """One number's way through steps 4 to 11: as a query, in what it asks, in the output."""
        ways = ((step.number, step.tensors[-1 if step.number == 8 else 0]) for step in self.steps)
        return [self._drawn(one, f"{number} {one.name}") for number, one in ways if number >= 4]

    def panel(self, number: int, name: str) -> Panel:
        """One tensor of a step, or the window of it that is drawn."""
        return self._drawn(self.steps[number - 1][name], f"step {number}: {name}")

    def _drawn(self, one: Named, title: str) -> Panel:
        picked = self._picked(one)
        window = np.ix_(*picked)
        names = {axis: self._words() for axis in ("token", "query", "key")}
        heads = tuple(f"head {head}" for head in picked[-2])

        def numbered(places: torch.Tensor | None) -> np.ndarray | None:
            return None if places is None else self._numbered(_array(places)[window])

        return Panel(
            title,
            _array(one.tensor)[window],
            one.axes,
            rows=heads if one.axes[-2] == "head" else names.get(one.axes[-2]),
            columns=names.get(one.axes[-1]),
            blocks=names.get(one.axes[-3]) if len(one.axes) == 4 else None,
            cells=numbered(one.cells),
            groups=numbered(one.groups),
            positions=None if self.shown is None else tuple(picked),
            whole=one.shape,
        )

    def _words(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(words[i] for i in self._tokens) for words in self.labels)

    def _picked(self, one: Named) -> list[list[int]]:
        """The indices along each axis of a tensor that are drawn."""
        if self.shown is None:
            return [list(range(size)) for size in one.shape]
        of_keys = one.name.split(",")[0] in ("keys", "values", "W_key", "W_value")
        heads = self.shown["key/value head" if of_keys else "head"]
        head_dim = self.steps[1].tensors[0].shape[1]
        flat = [head * head_dim + i for head in heads for i in self.shown["column"]]
        columns = self.shown["column"]
        if len(one.axes) == 3:
            columns = self.shown["wide column"] if one.name in ("input", "output") else flat
        picks = {
            "batch": [0],
            "token": self._tokens,
            "query": self._tokens,
            "key": self._tokens,
            "head": heads,
            "column": columns,
            "input column": self.shown["wide column"],
            "output column": flat,
        }
        return [picks[axis] for axis in one.axes]

    def _numbered(self, places: np.ndarray) -> np.ndarray:
        """Places in the numbering of the steps as identities of what is drawn; -1 for the rest."""
        n_tokens = len(self.labels[0])
        row, column = np.divmod(places, self.steps[0].width)
        batch, token = np.divmod(row, n_tokens)
        new_token = _ranks(self._tokens, n_tokens)[token]
        new_column = _ranks(self._columns, self.steps[0].width)[column]
        width = len(self._columns)
        found = (batch * len(self._tokens) + new_token) * width + new_column
        return np.where((new_token < 0) | (new_column < 0), -1, found)

    def without_transpose(self) -> Mistake:
        """The queries of step 5 cut straight into heads, beside the right way."""
        from attention_core.shape_steps import view_without_transpose

        flat, right = self.steps[3]["queries"], self.steps[5]["queries"]
        n_heads, n_tokens = right.shape[1], right.shape[2]
        # the same mistake on the numbers and on their places
        wrongly = right.moved(flat, lambda tensor: view_without_transpose(tensor, n_heads))
        assert wrongly.cells is not None
        tokens = _array(wrongly.cells)[0, :, :, 0] // self.steps[0].width  # of the first sentence
        wrong = tokens != np.arange(n_tokens)
        picked = self._picked(right)
        marked = tuple(
            (b, h, t, c)
            for b in range(len(picked[0]))
            for h, head in enumerate(picked[1])
            for t, token in enumerate(picked[2])
            for c in range(len(picked[3]))
            if wrong[head, token]
        )
        rows = [
            {
                "head": head,
                "row": row,
                "should hold": self.labels[0][row],
                "holds": self.labels[0][tokens[head, row]],
                "mixed up": "yes" if wrong[head, row] else "no",
            }
            for head in picked[1]
            for row in picked[2]
        ]
        return Mistake(
            right=self._drawn(right, "queries: view, then transpose(1, 2)"),
            wrong=replace(
                self._drawn(wrongly, "queries: view(B, H, T, D) at once"),
                rows=tuple(f"row {row}" for row in picked[2]),
                mark=marked,
            ),
            table=pd.DataFrame(rows),
            n_wrong=int(wrong.sum()),
            n_later=int((tokens > np.arange(n_tokens)).sum()),
            n_rows=wrong.size,
        )

    def without_contiguous(self) -> str:
        """What torch says when step 11 leaves out `contiguous`; empty where it works."""
        from attention_core.shape_steps import view_without_contiguous_error

        return view_without_contiguous_error(self.steps[8]["context"].tensor)

    def overview(self, current: int) -> str:
        """All steps with their shapes, one a line, the current one marked."""
        longest = max(len(step.title) for step in self.steps)
        return "\n".join(
            f"{'▶' if step.number == current else ' '} {step.number:2} "
            f"{step.title:{longest}}  {step.shape_text}"
            for step in self.steps
        )

    def window(self) -> str:
        """In words, which part of the tensors is drawn; empty if all of it is."""
        if self.shown is None:
            return ""
        n_heads, head_dim = self.steps[1].tensors[0].shape
        _, n_tokens, width = self.steps[0].tensors[0].shape
        heads = f"heads {_listed(self.shown['head'])} of {n_heads}"
        if self.shared:
            kv_heads = self.steps[5]["keys"].shape[1]
            heads += f" (key/value heads {_listed(self.shown['key/value head'])} of {kv_heads})"
        return (
            f"Drawn: tokens {_listed(self._tokens)} of {n_tokens}; {heads}; columns "
            f"{_listed(self.shown['column'])} of each head's {head_dim}; columns "
            f"{_listed(self.shown['wide column'])} of {width} of input and output. "
            "Computed: all of them."
        )

    def numbers(self, number: int) -> pd.DataFrame:
        """What is drawn of a step, one number a row."""
        tables = []
        for one in self.steps[number - 1].tensors:
            picked = self._picked(one)
            grid = np.meshgrid(*picked, indexing="ij")
            index = {axis: part.ravel() for axis, part in zip(one.axes, grid, strict=True)}
            values = _array(one.tensor)[np.ix_(*picked)].ravel()
            tables.append(pd.DataFrame({"tensor": one.name, **index, "value": values}))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class Mistake:
    """The wrong view beside the right one; the table says what each row of the wrong one holds.

    n_wrong, n_later: rows of one sentence, of `n_rows`, that hold another token, or a later one.
    """

    right: Panel
    wrong: Panel
    table: pd.DataFrame
    n_wrong: int
    n_later: int
    n_rows: int


def decimals(panels: Sequence[Panel]) -> int:
    """How many decimals to write: none where all numbers are whole."""
    return 2 if any((one.values != np.round(one.values)).any() for one in panels) else 0


def words(text: str) -> tuple[str, ...]:
    """A sentence split at blanks. OverLimit if there are more words than can be drawn."""
    found = tuple(text.split())
    if len(found) > MAX_SMALL_TOKENS:
        raise OverLimit(
            f"The sentence has {len(found)} words, {len(found) - MAX_SMALL_TOKENS} over the limit "
            f"of {MAX_SMALL_TOKENS}. Shorten it; what you typed is still in the box."
        )
    if not found:
        raise ValueError("There is no word in this sentence: type one or more.")
    return found


def example(
    sentences: Sequence[str],
    *,
    d_in: int,
    d_out: int,
    n_heads: int,
    context_length: int,
    causal: bool,
    dropout: float,
    seed: int,
    dropout_seed: int,
) -> Walk:
    """The steps on random embeddings and random matrices, both drawn with `seed`.

    Raises: ValueError for sizes or sentences that do not fit each other.
    """
    import torch

    from attention_core import MultiHeadAttention
    from attention_core.seeding import seeded
    from attention_core.shape_steps import multi_head_steps, random_embeddings

    labels = tuple(words(sentence) for sentence in sentences)
    x = random_embeddings(labels, d_in, seed)
    try:
        with seeded(seed):
            attention = MultiHeadAttention(
                d_in, d_out, context_length, dropout, n_heads, causal=causal
            )
    except ValueError as error:
        raise ValueError(f"{error}. {instead(d_out, n_heads)}") from error
    # in training mode, or dropout would do nothing
    try:
        with torch.no_grad(), seeded(dropout_seed):
            steps = multi_head_steps(attention.train(dropout > 0.0), x)
    except ValueError as error:
        raise ValueError(
            f"{error}. Make the context longer or the sentence shorter; nothing you set is lost."
        ) from error
    return Walk(steps, labels)


def instead(d_out: int, n_heads: int) -> str:
    """What to choose when the heads do not divide d_out; empty if they do."""
    if d_out % n_heads == 0:
        return ""
    heads = [n for n in range(1, MOST_HEADS + 1) if d_out % n == 0]
    widths = [n for n in range(n_heads, MOST_WIDTH + 1, n_heads)]
    return (
        f"With d_out {d_out}, take {_or(heads)} heads. With {n_heads} heads, take a d_out of "
        f"{_or(widths)}."
    )


@dataclass(frozen=True)
class _Run:
    """What enters each block of a model on one text: a tensor (1, T, C) for each layer."""

    labels: tuple[str, ...]
    hidden_states: tuple[torch.Tensor, ...]

    @property
    def nbytes(self) -> int:
        return sum(one.numel() * one.element_size() for one in self.hidden_states)


_runs: BoundedCache[_Run] = BoundedCache(64 * 1024**2, lambda run: run.nbytes)


def layer(name: str, text: str, number: int, first_head: int) -> Walk:
    """The steps of a model's layer on a sentence; `WINDOW_HEADS` heads are drawn.

    Raises: OverLimit for a text that is too long, ValueError for one without any token, and what
    loading a model raises.
    """
    import torch

    from attention_core.shape_steps import layer_steps

    check_text(text)
    run = _runs.get((*models.key(name), text), lambda: _forward(name, text))
    core = models.get(name).core
    config = core.config
    with torch.inference_mode():
        steps = layer_steps(core, run.hidden_states[number], number)
    heads = list(range(config.n_heads))[first_head : first_head + WINDOW_HEADS]
    group = config.n_heads // config.kv_heads
    shown = {
        "token": list(range(min(len(run.labels), WINDOW_TOKENS))),
        "head": heads,
        "key/value head": sorted({head // group for head in heads}),
        "column": list(range(min(config.d_head, WINDOW_COLUMNS))),
        "wide column": list(range(min(config.d_model, WINDOW_COLUMNS))),
    }
    rotary = config.positions == "rotary"
    return Walk(steps, (run.labels,), shown, shared=group > 1, layer=True, rotary=rotary)


def _forward(name: str, text: str) -> _Run:
    import torch

    model = models.get(name)
    tokens = models.encoded(model, text, MAX_MAP_TOKENS, "this page")
    check_tokens(len(tokens.ids), model.core.config.context_length, "the context of this model")
    with torch.inference_mode():
        output = model.core(torch.tensor([tokens.ids], device=model.device), record=True)
    return _Run(tokens.labels, output.hidden_states[:-1])


def first_heads(name: str) -> range:
    """The heads with which a window of `WINDOW_HEADS` heads can begin."""
    return range(max(1, models.spec(name).n_heads - WINDOW_HEADS + 1))


def n_layers(name: str) -> int:
    """How many layers a model has."""
    return models.spec(name).n_layers


@cache
def questions() -> tuple[Question, ...]:
    """Three questions, answered by the tensors themselves."""
    import torch

    from attention_core import PRESETS, split_heads
    from attention_core.examples import JOURNEY
    from attention_core.shape_steps import view_without_transpose

    b, t, width, heads = 2, 5, 12, 4
    split = split_heads(torch.zeros(b, t, width), heads)
    head_dim = split.shape[-1]

    tokens, cut = JOURNEY.tokens[:4], 2
    places = torch.arange(len(tokens) * 6).view(1, len(tokens), 6)
    found = int(view_without_transpose(places, cut)[0, 1, 0, 0]) // 6

    config = PRESETS["gpt2-xl"]
    return (
        Question(
            f"Queries of shape ({b}, {t}, {width}) are split for {heads} heads. Their shape after "
            "`transpose(1, 2)`?",
            str(tuple(split.shape)),
            (
                str((b, t, heads, head_dim)),
                str((b, heads, head_dim, t)),
                str((b, head_dim, t, heads)),
            ),
            f"`view` makes {(b, t, heads, head_dim)}; the transpose swaps token and head.",
        ),
        Question(
            f"“{' '.join(tokens)}”, six columns, {cut} heads, and someone writes "
            "`view(B, H, T, D)` at once. Whose numbers are in row 0 of head 1?",
            tokens[found],
            tuple(token for token in tokens if token != tokens[found]),
            f"Head 0 takes the first {len(tokens)} pieces in memory, {cut} of each token; the next "
            f"piece belongs to token {found}, though the row should hold token 0.",
        ),
        Question(
            f"GPT-2 XL is {config.d_model} wide and has {config.n_heads} heads. How many numbers "
            "of each token's query does one head see?",
            str(config.d_head),
            (str(config.d_model), str(config.n_heads), str(config.d_model * config.n_heads)),
            f"{config.d_model} / {config.n_heads} = {config.d_head}, as in GPT-2 small: "
            f"{PRESETS['gpt2'].d_model} / {PRESETS['gpt2'].n_heads} = {PRESETS['gpt2'].d_head}.",
        ),
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    whole = not tensor.dtype.is_floating_point
    plain: np.ndarray = (tensor if whole else tensor.detach().float()).cpu().numpy()
    return plain


def _ranks(chosen: list[int], size: int) -> np.ndarray:
    """For each index below `size` its place among the chosen ones, -1 if it is none of them."""
    ranks = np.full(size, -1)
    ranks[chosen] = np.arange(len(chosen))
    return ranks


def _listed(indices: list[int]) -> str:
    """Consecutive numbers as a range: "3 to 5"."""
    first, last = indices[0], indices[-1]
    return f"{first}" if first == last else f"{first} to {last}"


def _or(numbers: list[int]) -> str:
    texts = [str(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
