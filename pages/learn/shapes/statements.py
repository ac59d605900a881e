"""Which statements of the core made the tensors of each step."""

from __future__ import annotations

_FILE, _ATTEND = "attention_core/experiments/learn/shapes.py", "attention_core/attend.py"
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


def of_example(number: int) -> tuple[str, ...]:
    """Where the statements of a step on the example are: arguments of `source.step`."""
    return (_FILE, _EXAMPLE, *_EXAMPLE_CODE[number])


def of_layer(number: int, *, shared: bool, rotary: bool) -> tuple[str, ...]:
    """The same of a model's layer, its keys shared by heads or not, its positions rotary or not."""
    if number == 7:
        return (_ATTEND, "attention_scores", "return q @")
    if number == 8:
        return (_ATTEND, "attend", "masked = ", "scaled = ", "attention = ", "weights = ")
    if number == 9:
        text = "return (rows @ v)" if shared else "return weights @ v"
        return (_ATTEND, "_mix_by_group", text)
    turn = ("queries, keys = rotate(",) if number == 6 and rotary else ()
    return (_FILE, _LAYER, *_LAYER_CODE[number], *turn)
