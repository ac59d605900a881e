"""The statements of the core that compute each step, for the code shown on the page."""

from __future__ import annotations

_FILE, _ATTEND = "pages/learn/shapes/experiment/steps.py", "attention_core/attend.py"
_HEADS = "attention_core/heads.py"
_CALL = "attention_core/attention.py"
_ATTENTION = (_CALL, "MultiHeadAttention.forward")
_EXAMPLE = "multi_head_steps"
_LAYER = "layer_steps"

# Anchors of the statements that compute each step's tensors.
_EXAMPLE_CODE = {
    1: ("sizes",),
    2: ("columns",),
    3: ("linears", "matrices"),
    4: ("flat",),
    5: ("unrolled",),
    6: ("grouped",),
    7: ("scores",),
    8: ("masked", "scaled", "softmax", "weights"),
    9: ("context",),
    10: ("by token",),
    11: ("merged", "output"),
}
# For a model's layer: file, function, anchors.
_LAYER_CODE = {
    1: (_FILE, _LAYER, "input"),
    2: (_FILE, _LAYER, "columns"),
    3: (_FILE, _LAYER, "side by side", "matrices"),
    4: (_CALL, "MultiHeadAttention._project", "projection"),
    5: (_HEADS, "split_heads", "view"),
    6: (*_ATTENTION, "queries", "keys", "values"),
    10: (_HEADS, "merge_heads", "transpose"),
    11: (*_ATTENTION, "output"),
}


def example_statements(number: int) -> tuple[str, ...]:
    """Locate the statements of a step of the example: arguments of `source.show_lines`."""
    return (_FILE, _EXAMPLE, *_EXAMPLE_CODE[number])


def layer_statements(number: int, *, rotary: bool) -> tuple[str, ...]:
    """Locate the statements of a step of a model's layer: arguments of `source.show_lines`."""
    if number == 7:
        return (_ATTEND, "attention_scores", "scores")
    if number == 8:
        return (_ATTEND, "attend", "masked", "scaled", "softmax", "weights")
    if number == 9:
        return (_ATTEND, "mix_values", "context")
    turn = ("rotated",) if number == 6 and rotary else ()
    return (*_LAYER_CODE[number], *turn)
