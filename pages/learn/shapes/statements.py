"""Which statements of the core made the tensors of each step."""

from __future__ import annotations

_FILE, _ATTEND = "pages/learn/shapes/experiment/steps.py", "attention_core/attend.py"
_HEADS = "attention_core/heads.py"
_DOOR = "attention_core/attention.py"
_ATTENTION = (_DOOR, "MultiHeadAttention.forward")
_EXAMPLE = "multi_head_steps"
_LAYER = "layer_steps"

# The statements that made the tensors of each step: function's file, its name, texts in them.
_EXAMPLE_CODE = {
    1: ("batch_size, n_tokens, _ = x.shape",),
    2: ("columns = torch.arange",),
    3: ("linears = attention", "matrices = ["),
    4: ("flat = (",),
    5: ("unrolled = [",),
    6: ("queries, keys, values = (",),
    7: ("scores = queries @",),
    8: ("masked = scores", "scaled = masked", "softmaxed = attention", "weights = nn."),
    9: ("context = weights @",),
    10: ("by_token = context",),
    11: ("merged = by_token", "output = attention"),
}
# The same for a model's layer: file, function, texts.
_LAYER_CODE = {
    1: (_FILE, _LAYER, "x = layer.attention_reads"),
    2: (_FILE, _LAYER, "columns = torch.arange"),
    3: (_FILE, _LAYER, "side_by_side = attention", "matrices = ["),
    4: (_DOOR, "MultiHeadAttention._project", "self.qkv(x)"),
    5: (_HEADS, "split_heads", "x.view("),
    6: (*_ATTENTION, "q = split_heads(", "k = split_heads(", "v = split_heads("),
    10: (_HEADS, "merge_heads", "x.transpose(1, 2)"),
    11: (*_ATTENTION, "self.out(merge_heads"),
}


def of_example(number: int) -> tuple[str, ...]:
    """Where the statements of a step on the example are: arguments of `source.step`."""
    return (_FILE, _EXAMPLE, *_EXAMPLE_CODE[number])


def of_layer(number: int, *, rotary: bool) -> tuple[str, ...]:
    """The same for a model's layer, whose positions are rotary or not."""
    if number == 7:
        return (_ATTEND, "attention_scores", "@ k.transpose")
    if number == 8:
        return (_ATTEND, "attend", "masked = ", "scaled = ", "attention = ", "weights = ")
    if number == 9:
        return (_ATTEND, "mix_values", "@ v")
    turn = ("q, k = rotate(",) if number == 6 and rotary else ()
    return (*_LAYER_CODE[number], *turn)
