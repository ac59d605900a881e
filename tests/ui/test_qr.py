"""Test QR codes: they encode the link and have the quiet zone that scanners need."""

import io

import numpy as np
import pytest
import segno
from PIL import Image

from serving.limits import MAX_QR_CHARACTERS, OverLimit
from ui.export import qr

LINK = "https://lab.example.org/heads?heads_text=The+animal+didn%27t&heads_layer=3"


@pytest.mark.parametrize("link", [LINK, "https://lab.example.org/?" + "a" * 900])
def test_modules_encode_the_link(link: str):
    with Image.open(io.BytesIO(qr.png(link))) as picture:
        dark = np.asarray(picture.convert("L")) < 128
    modules = dark[:: qr.MODULE_PIXELS, :: qr.MODULE_PIXELS]
    assert np.array_equal(dark, np.kron(modules, np.ones((qr.MODULE_PIXELS,) * 2, bool)))
    inside = modules[qr.MARGIN : -qr.MARGIN, qr.MARGIN : -qr.MARGIN]
    assert modules.sum() == inside.sum() > 0  # the quiet zone is empty
    assert inside.tolist() == [
        [bool(module) for module in row] for row in segno.make_qr(link, error="l").matrix
    ]
    assert inside.tolist() != [
        [bool(module) for module in row] for row in segno.make_qr(link[:-1] + "4", error="l").matrix
    ]


def test_link_too_long_for_phones_is_rejected():
    with pytest.raises(OverLimit, match="1,001.*1,000"):
        qr.png("h" * (MAX_QR_CHARACTERS + 1))
