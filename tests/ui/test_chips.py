"""Test that chips are sent to the browser as text, up to a limit."""

import json

import pytest

from ui.canvas.chips import MAX_CHIPS, Chip, chips, pack


def test_chips_are_packed_as_text_and_limited():
    item = Chip("</script><b>", "d\u202e", muted=True, line_after=True)
    packed = json.loads(pack([item], title="t", hint="h"))
    assert packed["chips"] == [["</script><b>", "d\u202e", True, False, True]]
    with pytest.raises(ValueError, match=f"{MAX_CHIPS + 1} chips"):
        chips([item] * (MAX_CHIPS + 1), title="t", key="k")
