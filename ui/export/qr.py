"""A link as a QR code, for phones in a classroom."""

from __future__ import annotations

import io

from serving.limits import MAX_QR_CHARACTERS, OverLimit

MODULE_PIXELS, MARGIN = 10, 4  # the standard requires a margin of 4 modules


def png(address: str) -> bytes:
    """A QR code for the address, black on white, as a PNG.

    Raises: OverLimit if the address is too long for phones to scan the code on a screen.
    """
    import segno

    if len(address) > MAX_QR_CHARACTERS:
        raise OverLimit(
            f"This link has {len(address):,} characters, but a QR code that phones can read has at "
            f"most {MAX_QR_CHARACTERS:,}. Shorten the text on this page."
        )
    picture = io.BytesIO()
    code = segno.make_qr(address, error="l")
    code.save(picture, kind="png", scale=MODULE_PIXELS, border=MARGIN)
    return picture.getvalue()
