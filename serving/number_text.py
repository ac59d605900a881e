"""Numbers to be read: with a minus sign, which a hyphen is not."""

from __future__ import annotations


def written(number: float, form: str) -> str:
    """The number in a format such as ".3f" or "+.2g"; −0.5 in ".2f" is "−0.50"."""
    return format(number, form).replace("-", "−")
