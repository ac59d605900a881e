"""What the page "Block" shows: one layer step by step, its parts, and what layers do to a text."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pretrained.tokens import printable
from ui import models
from ui.bounded import BoundedCache
from ui.limits import (
    LAYER_CACHE_BYTES,
    MAX_MAP_TOKENS,
    STREAM_CACHE_BYTES,
    check_text,
    check_tokens,
)
from ui.quiz import Question
from ui.tensors import Panel

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.block import DecoderLayer
    from attention_core.lens import Lens, Stream
    from attention_core.transformer import Block

ENCODER_2017, DECODER_2017 = "2017 encoder layer", "2017 decoder layer"
BASE_2017 = "2017 Transformer, base"
WIDTH_2017 = 512
HEADS_2017, HIDDEN_2017 = (1, 2, 4, 8, 16), (512, 1024, 2048, 4096)
ORDERS = ("reversed", "rotated", "shuffled")
MAX_SEED = 50
EMPTY = "There is no word in this text: type one or more."
PARIS = "The capital of France is"

TOKENS_SHOWN, COLUMNS_SHOWN = 6, 6  # the window of values
HEADS_SHOWN, HEAD_COLUMNS_SHOWN = 3, 3  # at the concatenation
PALETTE = (HEADS_SHOWN, TOKENS_SHOWN * HEAD_COLUMNS_SHOWN)  # a hue a head
_CODE, _DECODER = "attention_core/block.py", "DecoderLayer.steps"

# For each tensor of `attention_core.block.Steps`: the letters of its axes, what the statement that
# makes it contains, and the tensors that it is made of.
_PARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "normalised for attention": ("TC", "attention_norm(", ("input",)),
    "outputs of the heads": ("HTD", "attention.heads(", ("input",)),
    "concatenated per word": ("TJ", "merge_heads(record.context)", ("outputs of the heads",)),
    "out projection": ("TC", "attention.out(", ("concatenated per word",)),
    "residual sum": ("TC", "attention_sum = x +", ("input", "out projection")),
    "normalised sum": ("TC", "attention_norm(", ("residual sum",)),
    "outputs of the cross-attention heads": ("HTD", "cross.heads(", ("normalised sum",)),
    "cross-attention concatenated": (
        "TJ",
        "merge_heads(cross_record.context)",
        ("outputs of the cross-attention heads",),
    ),
    "cross-attention out projection": ("TC", "cross.out(", ("cross-attention concatenated",)),
    "residual sum with cross-attention": (
        "TC",
        "cross_sum = attention_normed +",
        ("normalised sum", "cross-attention out projection"),
    ),
    "normalised cross-attention sum": (
        "TC",
        "cross_norm(",
        ("residual sum with cross-attention",),
    ),
    "normalised for feed-forward": ("TC", "mlp_norm(", ("residual sum",)),
    "feed-forward hidden": ("TF", "mlp.hidden(", ()),
    "feed-forward output": ("TC", "mlp.down(", ("feed-forward hidden",)),
    "second residual sum": ("TC", "mlp_sum =", ("feed-forward output",)),
    "normalised output": ("TC", "mlp_norm(", ("second residual sum",)),
}
_AXES = {"H": "head", "T": "token", "D": "column", "C": "width", "J": "heads x column",
         "F": "hidden"}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One tensor of a layer: its values without the batch, and the statement that made it."""

    name: str
    values: np.ndarray
    axes: tuple[str, ...]
    source: tuple[str, str, str]  # file, function, text of the statement
    made_of: tuple[str, ...]

    @property
    def shape(self) -> str:
        """The sizes with their axes' names: `(token 5, width 512)`."""
        sizes = ", ".join(f"{a} {n}" for a, n in zip(self.axes, self.values.shape, strict=True))
        return f"({sizes})"

    @property
    def norms(self) -> np.ndarray:
        """The length of every token's vector, over all heads where there are heads."""
        squares = np.square(self.values).sum(axis=-1)  # (T,), or (H, T) with heads
        return np.asarray(np.sqrt(squares.sum(axis=0) if squares.ndim == 2 else squares))


@dataclass(frozen=True)
class Layer:
    """A layer's steps on a text, in the order in which they were computed."""

    title: str
    labels: tuple[str, ...]
    steps: tuple[Step, ...]
    n_heads: int
    head_size: int
    pre_norm: bool
    memory: Step | None = None  # the encoder's output, for a layer with cross-attention
    memory_labels: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row a step."""
        return pd.DataFrame(
            {
                "step": range(len(self.steps)),
                "tensor": [step.name for step in self.steps],
                "shape": [step.shape for step in self.steps],
                "mean norm": [float(step.norms.mean()) for step in self.steps],
            }
        )

    @property
    def summary(self) -> str:
        """One line about the layer."""
        order = "pre" if self.pre_norm else "post"
        memory = f" Its memory: {len(self.memory_labels)} encoder tokens." if self.memory else ""
        heads = f"{self.n_heads} head{'s' if self.n_heads > 1 else ''} of {self.head_size}"
        return f"{self.title}: {order}-norm, {heads}.{memory}"

    def named(self, name: str) -> Step:
        """The step of a name."""
        return next(step for step in self.steps if step.name == name)


@dataclass(frozen=True)
class Run:
    """What a model did to a text.

    stream: the tensors. labels: a label a token. norms: (L + 1, T) of the stream, and (L, T) of
    what attention and feed-forward add. causal: whether it predicts.
    """

    title: str
    labels: tuple[str, ...]
    stream: Stream
    norms: np.ndarray
    attention: np.ndarray
    feed_forward: np.ndarray


def _bytes_of(run: Run) -> int:
    stream = run.stream
    tensors = (stream.states, stream.attention, stream.feed_forward, stream.hidden, stream.logits)
    return sum(t.numel() * t.element_size() for t in tensors if t is not None)


def _module_bytes(module: Block | DecoderLayer) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())


_runs: BoundedCache[Run] = BoundedCache(STREAM_CACHE_BYTES, _bytes_of)
_layers: BoundedCache[Any] = BoundedCache(LAYER_CACHE_BYTES, _module_bytes)
# tables and windows of a few kilobytes each
_reorderings: BoundedCache[Reordered] = BoundedCache(64, lambda _: 1)
_counts: BoundedCache[Counts] = BoundedCache(64, lambda _: 1)
_lenses: BoundedCache[LensTable] = BoundedCache(256, lambda _: 1)
_next_tokens: BoundedCache[NextToken] = BoundedCache(64, lambda _: 1)
_gate = threading.Lock()  # one pass at a time: two at once on the same cores are slower


def clear() -> None:
    """Forget everything that is kept (tests)."""
    for kept in (_runs, _layers, _reorderings, _counts, _lenses, _next_tokens):
        kept.clear()


def _key(choice: str) -> tuple[str, ...]:
    """A layer or model of 2017 by its name, a model by its name and weights."""
    untrained = choice in (ENCODER_2017, DECODER_2017, BASE_2017)
    return (choice,) if untrained else models.key(choice)


def run(name: str, text: str) -> Run:
    """A model on a text, kept. Raises OverLimit, or ValueError for a text without a token."""
    check_text(text)
    return _runs.get((*models.key(name), text), lambda: _run(name, text))


def _run(name: str, text: str) -> Run:
    import torch

    from attention_core.lens import residual_stream, token_norms

    model = models.get(name)
    tokens = models.encoded(model, text, MAX_MAP_TOKENS, "this page", empty=EMPTY)
    check_tokens(len(tokens.ids), model.core.config.context_length, "the context of this model")
    with _gate, torch.inference_mode():
        stream = residual_stream(model.core, torch.tensor(tokens.ids, device=model.device))
        norms = [
            token_norms(x).float().cpu().numpy()
            for x in (stream.states, stream.attention, stream.feed_forward)
        ]
    return Run(model.spec.title, tokens.labels, stream, *norms)


# --- one layer, step by step


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, for the layers of 2017. Raises OverLimit; ValueError without a word."""
    check_text(text)
    words = tuple(text.split())
    check_tokens(len(words), MAX_MAP_TOKENS, "this page")
    if not words:
        raise ValueError(EMPTY)
    return words


def _layer_2017(kind: str, n_heads: int, d_ff: int) -> Any:
    """An untrained layer of these sizes, the same each time."""

    def make() -> Any:
        from attention_core.block import DecoderLayer, original_config, randomize
        from attention_core.transformer import Block

        config = original_config(n_heads=n_heads, d_ff=d_ff)
        layer = Block(config, 0) if kind == ENCODER_2017 else DecoderLayer(config)
        randomize(layer, seed=0)
        return layer.eval().requires_grad_(False)

    return _layers.get((kind, n_heads, d_ff), make)


def layer_2017(kind: str, text: str, n_heads: int, d_ff: int) -> Layer:
    """An untrained layer of the first Transformer on the words of a text.

    The decoder layer reads the first half of the words; its memory is the encoder layer's output
    for all of them. Raises OverLimit; ValueError without a word.
    """
    import torch

    from attention_core.block import layer_input, layer_steps

    words = words_of(text)
    layer = _layer_2017(kind, n_heads, d_ff)
    with torch.inference_mode():
        x = layer_input(words, WIDTH_2017)[None]
        encoded, shown, where = None, words, "_post_norm_steps"
        if kind == DECODER_2017:
            encoder = _layer_2017(ENCODER_2017, n_heads, d_ff)
            memory, _ = encoder(x, mask=None, rotation=None, cache=None)
            encoded = Step(
                "memory, from the encoder",
                memory[0].numpy(),
                (_AXES["T"], _AXES["C"]),
                ("ui/lessons/block.py", "layer_2017", "memory, _ = encoder("),
                (),
            )
            shown, where = words[: (len(words) + 1) // 2], _DECODER
            steps = layer.steps(x[:, : len(shown)], memory)
        else:
            steps = layer_steps(layer, x)
    origin = (_CODE, "layer_input", "return word_vectors(")
    return Layer(
        title=f"{kind}, untrained weights",
        labels=_unique(shown),
        steps=_steps(steps, where, origin, pre_norm=False),
        n_heads=n_heads,
        head_size=WIDTH_2017 // n_heads,
        pre_norm=False,
        memory=encoded,
        memory_labels=_unique(words) if encoded else (),
    )


def layer_of(name: str, text: str, layer: int) -> Layer:
    """A layer of a loaded model on a text; errors as of `run` and of loading."""
    import torch

    from attention_core.block import layer_steps, surroundings

    done = run(name, text)
    core = models.get(name).core
    block, config = core.blocks[layer], core.config
    with torch.inference_mode():
        mask, rotation = surroundings(config, len(done.labels), done.stream.states.dtype)
        steps = layer_steps(block, done.stream.states[layer][None], mask=mask, rotation=rotation)  # type: ignore[arg-type]
    pre = config.norm_order == "pre"
    made = "x, attention_record = block(" if layer else "x = self._embed("
    return Layer(
        title=f"{done.title}, layer {layer}",
        labels=done.labels,
        steps=_steps(
            steps,
            "_pre_norm_steps" if pre else "_post_norm_steps",
            ("attention_core/transformer.py", "Transformer.forward", made),
            pre_norm=pre,
        ),
        n_heads=config.n_heads,
        head_size=config.d_head,
        pre_norm=pre,
    )


def _steps(
    tensors: dict[str, Tensor], function: str, origin: tuple[str, str, str], *, pre_norm: bool
) -> tuple[Step, ...]:
    steps = []
    names = list(tensors)
    for number, (name, tensor) in enumerate(tensors.items()):
        letters, line, made_of = _PARTS.get(name, ("TC", "", ()))
        if name == "outputs of the heads" and pre_norm:
            made_of = ("normalised for attention",)
        elif name == "feed-forward hidden":
            made_of = (names[number - 1],)
        elif name == "second residual sum":
            made_of = (names[number - (4 if pre_norm else 3)], *made_of)
        steps.append(
            Step(
                name=name,
                values=tensor[0].float().cpu().numpy(),
                axes=tuple(_AXES[letter] for letter in letters),
                source=(_CODE, function, line) if line else origin,
                made_of=made_of,
            )
        )
    return tuple(steps)


def _unique(words: tuple[str, ...]) -> tuple[str, ...]:
    """Printable labels, the second "the" as "the (2)"."""
    counts: dict[str, int] = {}
    labels = []
    for word in map(printable, words):
        counts[word] = counts.get(word, 0) + 1
        labels.append(word if counts[word] == 1 else f"{word} ({counts[word]})")
    return tuple(labels)


def panels(layer: Layer, step: Step) -> tuple[list[Panel], bool]:
    """A window into a tensor and those it is made of; and whether colours are identities.

    At the concatenation the cells of the first heads keep their identity: the window shows, for
    every word, the head outputs side by side.
    """
    shown = [layer.named(name) for name in step.made_of] + [step]
    if step.axes[-1] == _AXES["J"]:
        return [*_concatenation(layer, *shown)], True
    windows = [_window(part, layer.labels) for part in shown]
    if layer.memory is not None and step.name == "outputs of the cross-attention heads":
        windows.insert(1, _window(layer.memory, layer.memory_labels))
    return windows, False


def _window(step: Step, labels: tuple[str, ...]) -> Panel:
    tokens = labels[:TOKENS_SHOWN]
    values = step.values[..., :TOKENS_SHOWN, :COLUMNS_SHOWN]
    if values.ndim == 3:
        values = values[:2]
    return Panel(step.name, values, step.axes, rows=tokens, note=f"of {step.shape}")


def _concatenation(layer: Layer, heads: Step, merged: Step) -> tuple[Panel, Panel]:
    n_heads, width = min(layer.n_heads, HEADS_SHOWN), HEAD_COLUMNS_SHOWN
    tokens = layer.labels[:TOKENS_SHOWN]
    first = heads.values[:n_heads, : len(tokens), :width]
    head, token, column = np.indices(first.shape)
    cells = np.asarray((head * TOKENS_SHOWN + token) * width + column)
    columns = [h * layer.head_size + c for h in range(n_heads) for c in range(width)]
    second = merged.values[: len(tokens), columns]
    return (
        Panel(heads.name, first, heads.axes, rows=tokens, cells=cells, note=f"of {heads.shape}"),
        Panel(
            merged.name,
            second,
            merged.axes,
            rows=tokens,
            columns=[str(column) for column in columns],
            cells=cells.transpose(1, 0, 2).reshape(second.shape),
            note=f"of {merged.shape}; the first {width} columns of each head",
        ),
    )


# --- the same weights at every position


@dataclass(frozen=True)
class Reordered:
    """What a new order of the tokens does to the parts of a layer.

    table: one row a part. before, after: windows of f(x) reordered and of f of x reordered, for
    each part.
    """

    labels: tuple[str, ...]
    order: tuple[int, ...]
    table: pd.DataFrame
    windows: dict[str, tuple[Panel, Panel]]
    differences: dict[str, float]


def reordered(choice: str, text: str, how: str, seed: int) -> Reordered:
    """Parts of a layer of 2017, or of a model's first, on reordered tokens.

    Errors as of `words_of` and `run`.
    """
    key = (_key(choice), text, how, seed if how == "shuffled" else 0)
    return _reorderings.get(key, lambda: _reordered(choice, text, how, seed))


def _reordered(choice: str, text: str, how: str, seed: int) -> Reordered:
    import torch

    from attention_core import block

    if choice in (ENCODER_2017, DECODER_2017):
        words = words_of(text)
        labels, rotation = _unique(words), None
        layer = _layer_2017(choice, 8, 2048)
        tokens = block.word_vectors(words, WIDTH_2017)
        places = block.sinusoids(len(words), WIDTH_2017)

        def embed(x: Tensor, positions: bool) -> Tensor:
            return x + places if positions else x
    else:
        labels = run(choice, text).labels
        model = models.get(choice)
        core = model.core
        layer = core.blocks[0]
        tokens = torch.tensor(model.tokenizer.encode(text).ids, device=model.device)
        _, rotation = block.surroundings(core.config, len(labels), model.dtype)

        def embed(x: Tensor, positions: bool) -> Tensor:
            return block.embeddings(core, x, positions=positions)

    order = block.reordered(len(labels), how, seed)
    with _gate, torch.inference_mode():
        found = block.exchanges(layer, tokens, order, embed, rotation)
    rows = [labels[i] for i in order]
    return Reordered(
        labels=labels,
        order=tuple(order),
        table=pd.DataFrame(
            {
                "part": list(found),
                "largest difference": [f"{e.difference:.1e}" for e in found.values()],
                "largest value": [f"{e.largest:.2f}" for e in found.values()],
                "order does not matter": [e.difference < 1e-4 * e.largest for e in found.values()],
            }
        ),
        windows={
            name: (
                _rows("first the part, then the new order", e.function_first, rows),
                _rows("first the new order, then the part", e.order_first, rows),
            )
            for name, e in found.items()
        },
        differences={name: e.difference for name, e in found.items()},
    )


def _rows(name: str, values: Tensor, labels: list[str]) -> Panel:
    window = values[:TOKENS_SHOWN, :COLUMNS_SHOWN].float().cpu().numpy()
    note = f"of (token {values.shape[0]}, width {values.shape[1]})"
    return Panel(name, window, ("token", "width"), rows=labels[:TOKENS_SHOWN], note=note)


# --- parameters per part


@dataclass(frozen=True)
class Counts:
    """Parameters of a model by part. loaded: counted from weights, not from shapes alone."""

    parts: dict[str, int]
    total: int
    loaded: bool

    @property
    def table(self) -> pd.DataFrame:
        """One row a part, the total last."""
        rows = [*self.parts.items(), ("total", self.total)]
        return pd.DataFrame(
            {
                "part": [part for part, _ in rows],
                "parameters": [f"{count:,}" for _, count in rows],
                "share": [f"{count / self.total:.1%}" for _, count in rows],
            }
        )


def countable() -> list[str]:
    """What can be counted: the first Transformer, ready models, and known sizes."""
    from attention_core import PRESETS

    ready = [entry.spec.name for entry in models.ready()]
    return [BASE_2017, *ready, *(name for name in PRESETS if name not in ready)]


def counts(choice: str) -> Counts:
    """Parameters by part, of the loaded weights where they are here; errors as of loading."""
    return _counts.get(_key(choice), lambda: _count(choice))


def _count(choice: str) -> Counts:
    from attention_core import PRESETS
    from attention_core.block import on_paper, original_config, parameters_by_part

    ready = choice in [entry.spec.name for entry in models.ready()]
    model: Any
    if choice == BASE_2017:
        model = on_paper(original_config(), encoder_decoder=True)
    else:
        model = models.get(choice).core if ready else on_paper(PRESETS[choice])
    parts = parameters_by_part(model)
    order = sorted(parts, key=lambda part: -parts[part])
    total = sum(parameter.numel() for parameter in model.parameters())
    return Counts({part: parts[part] for part in order}, total, ready)


# --- the residual stream, the lens, the next token


def stream_table(done: Run) -> pd.DataFrame:
    """Norms by layer: mean and range over the tokens of the stream, and means of what is added."""
    added = {"attention adds": done.attention, "feed-forward adds": done.feed_forward}
    table = pd.DataFrame(
        {
            "layers passed": range(len(done.norms)),
            "stream, mean": done.norms.mean(axis=1),
            "stream, smallest": done.norms.min(axis=1),
            "stream, largest": done.norms.max(axis=1),
        }
    )
    for name, norms in added.items():
        table[f"{name}, mean"] = np.concatenate([[np.nan], norms.mean(axis=1)])
    return table


@dataclass(frozen=True)
class LensTable:
    """The logit lens at one position: likeliest tokens by layers passed, and the final one."""

    table: pd.DataFrame
    final: str
    probability: np.ndarray
    first_named: int
    settled: int


def lens(name: str, text: str, position: int) -> LensTable:
    """The logit lens of a decoder at a position. Errors as of `run`."""
    key = (*models.key(name), text, position)
    return _lenses.get(key, lambda: _lens(name, text, position))


def _lens(name: str, text: str, position: int) -> LensTable:
    import torch

    from attention_core.lens import lens_at, logit_lens

    done, model = run(name, text), models.get(name)
    with _gate, torch.inference_mode():
        found: Lens = lens_at(logit_lens(model.core, done.stream.states[:, position]), 5)
    table: dict[str, Any] = {"layers passed": range(len(found.ids))}
    for rank in range(found.ids.shape[1]):
        table[f"{rank + 1}."] = [
            f"{token_text(model, int(token))} {probability:.3f}"
            for token, probability in zip(
                found.ids[:, rank], found.probabilities[:, rank].tolist(), strict=True
            )
        ]
    table["rank of the final token"] = (found.final_rank + 1).tolist()
    probability = found.final_probability.float().cpu().numpy()
    table["its probability"] = probability
    return LensTable(
        table=pd.DataFrame(table),
        final=token_text(model, found.final),
        probability=probability,
        first_named=found.first_named,
        settled=found.settled,
    )


def token_text(model: Any, token: int) -> str:
    """A token of the vocabulary, with everything invisible in it made visible."""
    return printable(model.tokenizer.decode_bytes([token]))


@dataclass(frozen=True)
class NextToken:
    """The end of a text: the likeliest next tokens, and the last row alone against all rows."""

    tokens: tuple[str, ...]
    probabilities: np.ndarray
    difference: float
    largest: float
    rows: pd.DataFrame
    ratio: float


def next_token(name: str, text: str) -> NextToken:
    """What a decoder predicts behind a text. Errors as of `run`."""
    return _next_tokens.get((*models.key(name), text), lambda: _next_token(name, text))


def _next_token(name: str, text: str) -> NextToken:
    import torch

    from attention_core import forward_flops
    from attention_core.lens import last_row_alone

    done, model = run(name, text), models.get(name)
    logits = done.stream.logits
    if logits is None:
        raise ValueError(f"{name} has no output matrix and predicts no token.")
    with _gate, torch.inference_mode():
        alone = last_row_alone(model.core, done.stream.hidden)
        difference = float((alone - logits[-1]).abs().max())
        top = alone.float().softmax(dim=-1).topk(10)
    n, config = len(done.labels), model.core.config
    flops = {
        "every row, every row's logits": forward_flops(config, n, n, n_logits=n),
        "every row, the last row's logits": forward_flops(config, n, n),
        "the last row only, behind a KV cache": forward_flops(config, 1, n),
    }
    most = flops["every row, every row's logits"]
    return NextToken(
        tokens=tuple(token_text(model, int(token)) for token in top.indices),
        probabilities=top.values.cpu().numpy(),
        difference=difference,
        largest=float(logits[-1].abs().max()),
        rows=pd.DataFrame(
            {
                "computed": list(flops),
                "GFLOP": [f"{count / 1e9:.3f}" for count in flops.values()],
                "share": [f"{count / most:.1%}" for count in flops.values()],
            }
        ),
        ratio=most / flops["the last row only, behind a KV cache"],
    )


# --- the questions


def questions() -> list[Question]:
    """Three questions with computed answers; the last one needs a decoder's weights."""
    return [_share_question(), _order_question(), _lens_question() or _layer_question()]


def _share_question() -> Question:
    found = counts(BASE_2017)
    share = found.parts["feed-forward"] / found.total
    return Question(
        ask="Which share of the 2017 base model's parameters is in its feed-forward networks?",
        right=f"{share:.0%}",
        wrong=tuple(f"{share * factor:.0%}" for factor in (0.25, 0.5, 1.75)),
        because=f"{found.parts['feed-forward']:,} of {found.total:,}: two matrices of 512 × 2048 "
        "and their biases in each of 12 layers.",
    )


def _order_question() -> Question:
    found = reordered(ENCODER_2017, PARIS, "reversed", 0).differences
    free, causal = (
        found[f"attention, {kind}"] for kind in ("no mask, no positions", "causal mask")
    )
    moves = "The same rows, in reverse order", "Other rows"
    return Question(
        ask="A head with a causal mask and without positions reads a sentence in reverse. "
        "What comes out?",
        right=moves[causal > 1e-3],
        wrong=(moves[causal <= 1e-3], "The same rows, in the old order"),
        because=f"On “{PARIS}” the largest difference is {causal:.2g} with the mask and "
        f"{free:.1g} without: the mask lets a token see those before it, and those changed.",
    )


def _lens_question() -> Question | None:
    name = models.preferred("decoder")
    if name is None:
        return None
    try:
        done = run(name, PARIS)
        found = lens(name, PARIS, len(done.labels) - 1)
    except models.LOAD_ERRORS:  # the page itself says so where it needs the model
        return None
    n_layers = len(done.norms) - 1
    right = found.first_named
    others = [n for n in (0, n_layers // 4, n_layers // 2, n_layers) if n != right][-3:]
    return Question(
        ask=f"“{PARIS}”: after how many of the {n_layers} layers of {done.title} is its final "
        "choice first the likeliest token?",
        right=str(right),
        wrong=tuple(map(str, others)),
        because=f"Its probability is {found.probability[right]:.2f} after {right} layers"
        + (f", and {found.probability[right - 1]:.2f} one layer before." if right else "."),
    )


def _layer_question() -> Question:
    kinds = (ENCODER_2017, DECODER_2017)
    encoder, decoder = (
        sum(p.numel() for p in _layer_2017(kind, 8, 2048).parameters()) for kind in kinds
    )
    right = decoder / encoder
    return Question(
        ask="How many times the parameters of an encoder layer has a decoder layer of 2017?",
        right=f"{right:.2f}",
        wrong=("1.00", "2.00"),
        because=f"{decoder:,} against {encoder:,}: cross-attention and its norm come on top.",
    )
