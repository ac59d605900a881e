"""Numbers on every page can be recomputed from the operands shown below them."""

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.testing import assert_close

from tests.helpers.apptest import open_whole_page
from tests.helpers.arithmetic import result
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.drawn_tensors import drawn_panels
from ui.canvas.tensors import provenance

LADDER, SHAPES = "pages/learn/ladder/page.py", "pages/learn/shapes/page.py"
RECOMPUTED = "pages/kv_cache/what_is_recomputed/page.py"
HEADS = "pages/compare/heads/page.py"
RUNGS = ("simplified", "v1", "v2", "causal", "dropout", "wrapper", "splits")


@pytest.mark.parametrize(
    ("page", "link"),
    [
        *((LADDER, {"ladder_rung": rung, "ladder_d_out": "4"}) for rung in RUNGS),
        *((SHAPES, {"shapes_step": str(step)}) for step in (4, 8, 11)),
        (SHAPES, {"shapes_of": DECODER, "shapes_step": "6", "shapes_head": "1"}),
        (RECOMPUTED, {"what_is_recomputed_step": "1"}),
        (RECOMPUTED, {"what_is_recomputed_step": "4", "what_is_recomputed_column": "9"}),
        (HEADS, {"heads_model": ENCODER}),
    ],
)
def test_operands_give_the_number(
    site: AppTest, monkeypatch: pytest.MonkeyPatch, page: str, link: dict[str, str]
):
    monkeypatch.setattr(provenance, "TERMS_WRITTEN", 10_000)  # No limit.
    open_whole_page(site, page, **link)
    tensors = drawn_panels(site)
    explained = {name: one for name, one in tensors.items() if one.operands is not None}
    assert explained
    identities = {one.panel["identity"] for one in tensors.values()}
    for name, one in explained.items():
        source, values = one.panel["made"], torch.tensor(one.values)
        added = None if one.added is None else torch.tensor(one.added)
        terms_result = result(source["kind"], torch.tensor(one.operands), added, values)
        rows, columns = one.panel["there"] or values.shape[-2:]
        # Sums of up to 64 float32 products in two different orders.
        assert_close(
            values[..., :rows, :columns],
            terms_result[..., :rows, :columns],
            atol=1e-4,
            rtol=1e-5,
            msg=lambda text, name=name: f"{name}: {text}",
        )
        # A step on the Shapes page shows its inputs but not their sources.
        if page != SHAPES:
            assert set(source["sources"]) <= identities
