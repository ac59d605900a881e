"""A link as a QR code, for phones in a classroom."""

from __future__ import annotations

import io

from serving.limits import MAX_QR_CHARACTERS, OverLimit

PIXELS_OF_A_MODULE, MARGIN = 10, 4  # the margin, in modules, is what the standard asks for


def png(address: str) -> bytes:
    """A QR code that holds the address, black on white.

    Raises: OverLimit for an address that is so long that no phone reads its code from a screen.
    """
    import segno

    if len(address) > MAX_QR_CHARACTERS:
        raise OverLimit(
            f"This link has {len(address):,} characters, and a code that phones can read holds "
            f"{MAX_QR_CHARACTERS:,}. Shorten the text on this page."
        )
    picture = io.BytesIO()
    code = segno.make_qr(address, error="l")
    code.save(picture, kind="png", scale=PIXELS_OF_A_MODULE, border=MARGIN)
    return picture.getvalue()
