"""Multi-head attention in slow motion: eleven steps, every tensor kept, every cell followed.

`multi_head_steps` replays `MultiHeadAttention.forward`, `layer_steps` reads them from the record
of a `Transformer`'s layer.
Source: the lecture on weight splits, its steps 1 to 11.
Dimension letters: B batch, T tokens, H heads, H_kv key/value heads, D head size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from torch import Tensor, nn

from attention_core.attend import attention_weights, mask_scores
from attention_core.heads import merge_heads
from attention_core.ladder import MultiHeadAttention
from attention_core.model.attention import Attention
from attention_core.model.block import LayerRecord
from attention_core.model.transformer import Transformer
from attention_core.positions.rotary import Rotation

FLAT = ("batch", "token", "column")
BY_TOKEN = ("batch", "token", "head", "column")
BY_HEAD = ("batch", "head", "token", "column")
PAIRS = ("batch", "head", "query", "key")
MATRIX = ("input column", "output column")


@dataclass(frozen=True)
class Named:
    """One tensor of a step.

    axes: the name of each dimension. cells: for each number, its place in the (B, T, width)
    numbering of the step, where it is still one of the numbers of step 4, moved: `row * width +
    column` with `row = b * T + t`. groups: the place of the first number of the token and head to
    which it belongs; column `width - 1` stands for the token as a whole.
    bias: what was added to the sum of products, a number for each index of the last axis. factor:
    what every number was multiplied by. rotation: the cosines and sines (T, D) that turned it.
    """

    name: str
    tensor: Tensor
    axes: tuple[str, ...]
    cells: Tensor | None = None
    groups: Tensor | None = None
    bias: Tensor | None = None
    factor: float = 1.0
    rotation: Rotation | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return tuple(self.tensor.shape)

    def moved(self, source: Named, move: Callable[[Tensor], Tensor]) -> Named:
        """What this would be if `move` had moved `source`: its numbers and their places alike."""
        cells = None if source.cells is None else move(source.cells)
        groups = None if source.groups is None else move(source.groups)
        return replace(self, tensor=move(source.tensor), cells=cells, groups=groups)


@dataclass(frozen=True)
class ShapeStep:
    """One of the eleven steps.

    tensors: what it made, in this order. made_from: number and name of each tensor that it read.
    width: the row width of the numbering in `cells` and `groups`. why: Markdown, one to three
    sentences with the sizes at hand.
    """

    number: int
    title: str
    tensors: tuple[Named, ...]
    why: str
    width: int
    made_from: tuple[tuple[int, str], ...] = ()

    @property
    def shape_text(self) -> str:
        """The shape of what the step made; for the choice of sizes, the sizes."""
        first = self.tensors[-1]
        if self.number == 2:
            n_heads, head_dim = first.shape
            return f"{n_heads * head_dim}, {n_heads}, {head_dim}"
        shapes = list(dict.fromkeys(str(tensor.shape) for tensor in self.tensors))
        if self.number == 3 and len(shapes) == 1:
            return f"{shapes[0]} each"
        return " and ".join(shapes)

    def __getitem__(self, name: str) -> Named:
        """The tensor of this name; KeyError if the step has no tensor of it."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)


def random_embeddings(sentences: Sequence[Sequence[str]], d_in: int, seed: int) -> Tensor:
    """One random vector for each distinct word, so that a word is the same wherever it stands.

    Shape: (B, T, d_in), standard normal. Nothing is learned: the numbers mean nothing.
    Raises: ValueError without a word, or for sentences of different lengths.
    """
    lengths = [len(sentence) for sentence in sentences]
    if not lengths or not all(lengths):
        raise ValueError(f"every sentence needs a word, got lengths {lengths}")
    if len(set(lengths)) > 1:
        raise ValueError(
            f"the sentences have {' and '.join(map(str, lengths))} tokens: a batch is one tensor, "
            "so its sentences need the same number"
        )
    words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
    table = torch.randn(len(words), d_in, generator=torch.Generator().manual_seed(seed))
    return torch.stack([table[[words.index(word) for word in sentence]] for sentence in sentences])


def multi_head_steps(attention: MultiHeadAttention, x: Tensor) -> tuple[ShapeStep, ...]:
    """The eleven steps of `attention(x)`; the last tensor is what `forward` returns, bit by bit.

    In training mode with dropout this holds for the same state of torch's generator.
    Shapes: x (B, T, d_in) -> output (B, T, d_out).
    Raises: ValueError if T exceeds the context length.
    """
    n_heads, head_dim = attention.num_heads, attention.head_dim
    d_out = n_heads * head_dim
    mask = attention.mask(x)
    dropout = attention.dropout if attention.training else 0.0

    batch_size, n_tokens, d_in = x.shape  # 1
    columns = torch.arange(d_out).view(n_heads, head_dim)  # 2
    linears = attention.W_query, attention.W_key, attention.W_value, attention.out_proj
    matrices = [linear.weight.T for linear in linears]  # 3: nn.Linear stores them transposed
    flat = (attention.W_query(x), attention.W_key(x), attention.W_value(x))  # 4
    unrolled = [tensor.view(batch_size, n_tokens, n_heads, head_dim) for tensor in flat]  # 5
    queries, keys, values = (tensor.transpose(1, 2) for tensor in unrolled)  # 6
    scores = queries @ keys.transpose(2, 3)  # 7
    masked = scores if mask is None else mask_scores(scores, mask)  # 8: mask,
    scaled = masked * (1.0 / math.sqrt(head_dim))  # scale,
    softmaxed = attention_weights(scaled)  # softmax,
    weights = nn.functional.dropout(softmaxed, dropout) if dropout else softmaxed  # dropout
    context = weights @ values  # 9
    by_token = context.transpose(1, 2)  # 10
    merged = by_token.contiguous().view(batch_size, n_tokens, d_out)  # 11
    output = attention.out_proj(merged)  # 11, the projection

    weighing = {"scaled": scaled, "weights": softmaxed}
    weighing = weighing if mask is None else {"masked": masked, **weighing}
    return _assemble(
        _Sizes(d_in, n_heads, n_heads, head_dim, mask is not None, dropout),
        x=x,
        columns=columns,
        matrices=matrices,
        biases=[linear.bias for linear in linears],
        projected=(flat, unrolled, (queries, keys, values)),
        scores=scores,
        weighing={**weighing, "after dropout": weights} if dropout else weighing,
        contexts=(context, by_token, merged),
        output=output,
    )


def layer_steps(model: Transformer, layer: LayerRecord, number: int) -> tuple[ShapeStep, ...]:
    """The eleven steps of one layer's attention, read from the record of a forward pass.

    With fewer key/value heads than heads (grouped-query attention) the keys and values are
    narrower, and several query heads read the same ones; they have columns of their own in the
    numbering. With rotary positions step 6 also turns the queries and keys.

    Arguments: `layer` is the record of the model's layer `number`, from a pass without a cache.
    Raises: ValueError for a layer that the model does not have, or latent attention, which takes
    other steps.
    """
    if not 0 <= number < len(model.blocks):
        raise ValueError(f"layer {number} is not one of 0 to {len(model.blocks) - 1}")
    attention = model.get_submodule(f"blocks.{number}.attention")
    if not isinstance(attention, Attention):
        raise ValueError("the eleven steps are those of multi-head attention, not of latent")
    config, record = model.config, layer.attention
    assert record.projected is not None  # every layer with this attention records them
    assert record.output is not None
    head_counts = (config.n_heads, config.kv_heads, config.kv_heads)
    widths = config.qkv_widths

    x = layer.attention_reads  # 1
    columns = torch.arange(widths[0]).view(config.n_heads, config.d_head)  # 2
    side_by_side = attention.qkv.weight.split(widths, dim=1)
    matrices = [*side_by_side, attention.out.weight]  # 3
    biases = [None] * 3 if attention.qkv.bias is None else attention.qkv.bias.split(widths)
    flat = record.projected.split(widths, dim=-1)  # 4
    unrolled = [
        tensor.unflatten(-1, (heads, config.d_head))
        for tensor, heads in zip(flat, head_counts, strict=True)
    ]  # 5
    grouped = [tensor.transpose(1, 2) for tensor in unrolled]  # 6
    turned, rotation = {}, None
    if config.positions == "rotary":
        turned = {"queries, turned": record.q, "keys, turned": record.k}  # 6: positions
        positions = torch.arange(x.shape[1], device=x.device)
        rotation = model.new_pass(x, positions).rotation
    weighing = {"scaled": record.scaled_scores, "weights": record.weights}  # 8
    if config.causal:
        weighing = {"masked": record.masked_scores, **weighing}
    by_token = record.context.transpose(1, 2)  # 10
    merged = merge_heads(record.context)  # 11

    return _assemble(
        _Sizes(
            x.shape[-1], config.n_heads, config.kv_heads, config.d_head, config.causal, fused=True
        ),
        x=x,
        columns=columns,
        matrices=matrices,
        biases=[*biases, attention.out.bias],
        projected=(flat, unrolled, grouped),
        turned=turned,
        rotation=rotation,
        scores=record.scores,  # 7
        weighing=weighing,
        contexts=(record.context, by_token, merged),  # 9
        output=record.output,  # 11, the projection
    )


def view_without_transpose(x: Tensor, n_heads: int) -> Tensor:
    """The mistake: cut (B, T, H*D) straight into (B, H, T, D).

    The shape is right. But a view keeps the order in memory, token after token, so row t of head h
    holds part `(h*T + t) % H` of token `(h*T + t) // H` instead of part h of token t.
    Raises: ValueError if the heads do not divide the width.
    """
    batch_size, n_tokens, width = x.shape
    if n_heads < 1 or width % n_heads:
        raise ValueError(f"the width ({width}) must be divisible by n_heads ({n_heads})")
    return x.contiguous().view(batch_size, n_heads, n_tokens, width // n_heads)


def view_without_contiguous_error(x: Tensor) -> str:
    """What torch says to `view` right after `transpose`: (B, H, T, D) towards (B, T, H*D).

    Empty where torch allows it: with one head or one token the transpose moves nothing, and with
    heads of one column the last two dimensions are still one walk through memory.
    """
    batch_size, n_heads, n_tokens, head_dim = x.shape
    try:
        x.transpose(1, 2).view(batch_size, n_tokens, n_heads * head_dim)
    except RuntimeError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class _Follow:
    """Follows the numbers of a (B, T, H*D) tensor: each step moves their places as it moves them.

    first: the column of the numbering at which the tensor's columns begin.
    """

    batch_size: int
    n_tokens: int
    n_heads: int
    head_dim: int
    width: int
    first: int = 0

    @property
    def rows(self) -> Tensor:
        """(B, T, 1): the place at which the row of each token begins."""
        rows = torch.arange(self.batch_size * self.n_tokens) * self.width
        return rows.view(self.batch_size, self.n_tokens, 1)

    def named(self, name: str, tensor: Tensor, axes: tuple[str, ...]) -> Named:
        """A tensor that holds the numbers of the flat one, moved."""
        columns = torch.arange(self.n_heads * self.head_dim)
        heads = columns // self.head_dim * self.head_dim
        cells, groups = self._moved(columns, axes), self._moved(heads, axes)
        return Named(name, tensor, axes, cells, groups)

    def _moved(self, columns: Tensor, axes: tuple[str, ...]) -> Tensor:
        flat = self.rows + self.first + columns  # (B, T, H*D)
        if axes == FLAT:
            return flat
        unrolled = flat.view(self.batch_size, self.n_tokens, self.n_heads, self.head_dim)
        return unrolled if axes == BY_TOKEN else unrolled.transpose(1, 2)

    @property
    def pairs(self) -> Tensor:
        """(B, H, T, T): a score belongs to its query's token and head."""
        firsts = self._moved(torch.arange(self.n_heads * self.head_dim), BY_HEAD)[..., :1]
        return firsts.expand(-1, -1, -1, self.n_tokens)

    def whole(self, columns: int) -> Tensor:
        """(B, T, columns): numbers that belong to their token as a whole."""
        return (self.rows + self.width - 1).expand(-1, -1, columns)


@dataclass(frozen=True)
class _Sizes:
    d_in: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    masked: bool
    dropout: float = 0.0
    fused: bool = False  # one matrix product for queries, keys and values


def _assemble(
    sizes: _Sizes,
    *,
    x: Tensor,
    columns: Tensor,
    matrices: Sequence[Tensor],
    biases: Sequence[Tensor | None],
    projected: Sequence[Sequence[Tensor]],
    turned: Mapping[str, Tensor] = MappingProxyType({}),
    rotation: Rotation | None = None,
    scores: Tensor,
    weighing: Mapping[str, Tensor],
    contexts: Sequence[Tensor],
    output: Tensor,
) -> tuple[ShapeStep, ...]:
    """Give the tensors of the eleven steps their names, axes, places and reasons."""
    three = ("queries", "keys", "values")
    q_width, kv_width = sizes.n_heads * sizes.head_dim, sizes.n_kv_heads * sizes.head_dim
    first = q_width if kv_width < q_width else 0  # shared keys are columns of their own
    width = q_width + (kv_width if first else 0) + 1
    batch_size, n_tokens, _ = x.shape
    queries_of = _Follow(batch_size, n_tokens, sizes.n_heads, sizes.head_dim, width)
    keys_of = _Follow(batch_size, n_tokens, sizes.n_kv_heads, sizes.head_dim, width, first)

    def split(tensors: Sequence[Tensor], axes: tuple[str, ...]) -> tuple[Named, ...]:
        ways = (queries_of, keys_of, keys_of)
        return tuple(
            way.named(name, tensor, axes)
            for way, name, tensor in zip(ways, three, tensors, strict=True)
        )

    factors = {
        "scaled": 1.0 / math.sqrt(sizes.head_dim),
        "after dropout": 1.0 / (1.0 - sizes.dropout),
    }

    def of_queries(tensors: Mapping[str, Tensor]) -> tuple[Named, ...]:
        return tuple(
            Named(name, tensor, PAIRS, groups=queries_of.pairs, factor=factors.get(name, 1.0))
            for name, tensor in tensors.items()
        )

    flat = tuple(
        replace(tensor, bias=bias)
        for tensor, bias in zip(split(projected[0], FLAT), biases, strict=False)
    )
    grouped = split(projected[2], BY_HEAD) + tuple(
        replace(way.named(name, tensor, BY_HEAD), rotation=rotation)
        for way, (name, tensor) in zip((queries_of, keys_of), turned.items(), strict=False)
    )
    context, by_token, merged = (
        queries_of.named(name, tensor, axes)
        for name, tensor, axes in zip(
            ("context", "context", "merged"), contexts, (BY_HEAD, BY_TOKEN, FLAT), strict=True
        )
    )
    entered = Named("input", x, FLAT, groups=queries_of.whole(x.shape[-1]))
    left = Named("output", output, FLAT, groups=queries_of.whole(output.shape[-1]), bias=biases[-1])
    named_matrices = tuple(
        Named(name, matrix, MATRIX)
        for name, matrix in zip(("W_query", "W_key", "W_value", "W_out"), matrices, strict=True)
    )
    weighed = of_queries(weighing)
    compared = tuple(turned) or three[:2]
    steps = (
        ("input", (entered,), ()),
        ("choose the sizes", (Named("columns", columns, ("head", "column")),), ()),
        ("weight matrices", named_matrices, ((2, "columns"),)),
        (
            "queries, keys, values",
            flat,
            ((1, "input"), *((3, matrix.name) for matrix in named_matrices[:3])),
        ),
        (
            "unroll the columns",
            split(projected[1], BY_TOKEN),
            tuple((4, name) for name in three),
        ),
        ("group by head", grouped, tuple((5, name) for name in three)),
        ("attention scores", of_queries({"scores": scores}), tuple((6, name) for name in compared)),
        ("attention weights", weighed, ((7, "scores"),)),
        ("context vectors", (context,), ((8, weighed[-1].name), (6, "values"))),
        ("back to tokens", (by_token,), ((9, "context"),)),
        ("merge heads", (merged, left), ((10, "context"), (3, "W_out"))),
    )
    return tuple(
        ShapeStep(number, title, tensors, why, width, made_from)
        for number, ((title, tensors, made_from), why) in enumerate(
            zip(steps, _reasons(sizes, turned=bool(turned)), strict=True), start=1
        )
    )


def _reasons(sizes: _Sizes, *, turned: bool) -> tuple[str, ...]:
    """Why each step is taken, with the sizes at hand."""
    heads, kv_heads, head_dim = sizes.n_heads, sizes.n_kv_heads, sizes.head_dim
    group = heads // kv_heads
    few = f" There are only {kv_heads} key/value heads: {group} query heads share each."
    shared = few if group > 1 else ""
    moved = " Rotary positions then turn queries and keys." if turned else ""
    hide = (
        "Where a query may not look, put -inf, which the softmax turns into a weight of 0. Then "
        "divide"
        if sizes.masked
        else "Divide"
    )
    dropped = (
        f" Dropout then makes each 0 with probability {sizes.dropout:.1f} and the rest larger."
        if sizes.dropout
        else ""
    )
    products = (
        "One product makes all three, for all heads"
        if sizes.fused
        else "Three wide products serve all heads"
    )
    return (
        f"Every token is a row of {sizes.d_in} numbers. The first axis is the batch: sentences "
        "that are computed at once and never see each other.",
        f"d_out is {heads * head_dim}: {heads} heads with {head_dim} columns each. More heads of "
        "the same d_out are narrower heads. GPT models take d_out as large as the width that goes "
        f"in.{shared}",
        f"A row of {sizes.d_in} numbers goes in and a column makes one number, so W_query has "
        f"{sizes.d_in} rows and {heads * head_dim} columns: those of all heads side by side, "
        f"{head_dim} for each. The numbers begin at random, and training sets them.{shared}",
        f"A token's row times a column of W_query is one number of its query. {products}; heads on "
        f"their own would make {heads + 2 * kv_heads}.",
        f"`view` cuts each row into pieces of {head_dim}. No number moves in memory. Read the new "
        "shape from the left: sentences, tokens of a sentence, heads of a token, numbers of a "
        "head.",
        "`transpose(1, 2)` swaps token and head, because a matrix product works on the last two "
        "axes: each head now holds a small matrix with one row for each token, and one call "
        f"multiplies all heads. The shape now reads: sentences, heads, tokens, numbers.{moved}",
        "Every query meets every key of its head. A product adds up rows times columns, so "
        f"`keys.transpose(2, 3)` stands the keys up as columns: {head_dim} numbers of a query meet "
        f"{head_dim} of a key.{shared}",
        f"{hide} by √{head_dim}, which keeps scores at one size for heads of any size. The "
        f"softmax of each row makes positive numbers that sum to 1.{dropped}",
        f"Each token gets the sum of all values of its head, each times its weight.{shared}",
        "The second `transpose(1, 2)` brings the heads of one token together again.",
        "`view` joins only what lies in reading order, so `contiguous` copies the numbers into "
        "that order first. The last projection mixes what the heads found. Attention works without "
        "it, too: it is one more matrix that training sets.",
    )
