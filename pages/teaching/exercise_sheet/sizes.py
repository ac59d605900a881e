"""Exercises about sizes: the shapes of multi-head attention, and the bytes of a KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pages.teaching.exercise_sheet.exercise import Exercise, Table, seeded_random
from ui.text.formatting import plural

if TYPE_CHECKING:
    from torch import Tensor

DTYPES = {"float16": 2, "float32": 4}  # bytes per number


def shapes(variant: int) -> Exercise:
    """The shape after each step of multi-head attention, and the layer's parameter count.

    They come from a layer of the core on torch's "meta" device, where tensors have shapes but no
    data.
    """
    import torch

    from attention_core.heads import merge_heads
    from attention_core.ladder import MultiHeadAttention

    numbers = seeded_random("shapes", variant)
    batch, tokens = numbers.randint(2, 5), numbers.randint(5, 12)
    heads, size = numbers.choice((2, 3, 4, 6, 8)), numbers.choice((4, 8, 16, 32))
    width = heads * size
    with torch.device("meta"):
        layer = MultiHeadAttention(width, width, tokens, 0.0, heads)
        x = torch.empty(batch, tokens, width)
        record = layer.record(x)
        queries, merged = layer.W_query(x), merge_heads(record.context)
    assert record.output is not None
    steps: list[tuple[str, Tensor]] = [
        ("input x", x),
        ("queries of all heads, x · W_q", queries),
        ("queries, split into heads", record.q),
        ("keys, split into heads and transposed", record.k.transpose(-2, -1)),
        ("scores q · k", record.scores),
        ("weights, softmax of each row", record.weights),
        ("contexts, weights · values", record.context),
        ("contexts, all heads concatenated", merged),
        ("output, after W_o", record.output),
    ]
    names = ("query", "key", "value", "out_proj")
    count = sum(parameter.numel() for parameter in layer.parameters())
    matrices = [layer.get_parameter(f"W_{name}.weight") for name in names[:3]]
    assert all(tuple(matrix.shape) == (width, width) for matrix in matrices)
    square = matrices[0].numel()
    return Exercise(
        "Shapes of multi-head attention",
        (
            f"A batch has B = {batch} texts of T = {tokens} tokens each. The layer has H = {heads} "
            f"heads. In each head, queries, keys and values have D = {size} elements. Each token "
            "is a vector with C = H · D elements.",
            "Write down the shape after each step. How many parameters does the layer have? W_q, "
            "W_k, W_v and W_o are C × C matrices, and only W_o has a bias (C numbers).",
        ),
        (),
        (
            Table("step", ("shape",), tuple((name, (_shape(value),)) for name, value in steps)),
            Table("", ("count",), (("parameters of the layer", (f"{count:,}",)),)),
        ),
        0,
        (
            f"C = {heads} · {size} = {width}",
            f"One matrix: {width} · {width} = {square:,} parameters",
            f"The layer: 4 · {square:,} + {width} = {count:,} parameters",
        ),
    )


def cache(variant: int) -> Exercise:
    """Bytes of the KV cache with MHA, GQA and MQA; multiplications that it saves in one step."""
    from attention_core.costs.formulas import kv_cache_bytes

    numbers = seeded_random("cache", variant)
    layers, heads = numbers.choice((12, 16, 24, 32)), numbers.choice((8, 16, 32))
    size, tokens = numbers.choice((64, 128)), numbers.choice((512, 1024, 2048, 4096))
    dtype = numbers.choice(tuple(DTYPES))
    width = DTYPES[dtype]
    forms = {"MHA": heads, "GQA": heads // 4, "MQA": 1}
    n_bytes = {
        form: kv_cache_bytes(
            n_layers=layers,
            n_kv_heads=kv_heads,
            head_size=size,
            n_tokens=tokens,
            bytes_per_value=width,
        )
        for form, kv_heads in forms.items()
    }
    rows = tuple(
        (form, (str(forms[form]), f"{count:,}", mib(count), f"{n_bytes['MHA'] // count}"))
        for form, count in n_bytes.items()
    )
    without, cached = multiplications(heads, size, tokens)
    return Exercise(
        "The KV cache",
        (
            f"A model has {layers} layers and {heads} query heads of size D = {size}. Its cache "
            f"stores {tokens:,} tokens in {dtype}, with {width} bytes per number. With MHA, each "
            f"query head has its own keys and values. With GQA, the query heads share {heads // 4} "
            "key/value heads. With MQA, they all share one.",
            "How many bytes does the cache need? How many times smaller is it than with MHA? One "
            "MiB is 1,048,576 bytes.",
            f"Now look at one layer with MHA when the text is {tokens:,} tokens long. How many "
            "multiplications do the scores and contexts need without a cache, when every row is "
            "computed, and with a cache, when only the last row is?",
        ),
        (),
        (
            Table("variant", ("key/value heads", "bytes", "MiB", "times smaller"), rows),
            Table(
                "scores and contexts of one layer",
                ("multiplications",),
                (
                    ("without a cache", (f"{without:,}",)),
                    ("with a cache", (f"{cached:,}",)),
                    ("saved", (f"{without - cached:,}",)),
                ),
            ),
        ),
        3,
        (
            *(
                f"{form}: 2 (keys, values) · {layers} layers · "
                f"{plural(kv_heads, 'head')} · {size} elements "
                f"· {tokens:,} tokens · {width} bytes = {n_bytes[form]:,} bytes"
                for form, kv_heads in forms.items()
            ),
            f"Without a cache: 2 · {heads} heads · {tokens:,} rows · {tokens:,} keys · {size} = "
            f"{without:,}",
            f"With a cache: 2 · {heads} heads · 1 row · {tokens:,} keys · {size} = {cached:,}",
            f"Saved: {without:,} − {cached:,} = {without - cached:,}. With the cache, the step "
            f"does only 1 / {tokens:,} of the work.",
        ),
    )


def multiplications(heads: int, size: int, tokens: int) -> tuple[int, int]:
    """Multiplications for the scores and contexts of one layer, without and with a cache.

    They're counted from the shapes that the core's `attend` returns on the "meta" device: each
    score is a sum of `size` products, and each element of a context is a sum of one product per
    key.
    """
    import torch

    from attention_core import attend

    def count(n_queries: int) -> int:
        with torch.device("meta"):
            q, k = torch.empty(heads, n_queries, size), torch.empty(heads, tokens, size)
            record = attend(q, k, k)
        return record.scores.numel() * size + record.context.numel() * tokens

    return count(tokens), count(1)


def mib(n_bytes: int) -> str:
    """Bytes in MiB, with at most three decimals and no trailing zeros."""
    return f"{n_bytes / 2**20:,.3f}".rstrip("0").rstrip(".")


def _shape(value: Tensor) -> str:
    sizes: Sequence[int] = value.shape
    return f"({', '.join(map(str, sizes))})"
