"""Token labels inside the site's own sentences."""


def isolated(label: str) -> str:
    """Wrap a label in isolate marks, so that right-to-left text doesn't reorder the sentence."""
    return f"\u2068{label}\u2069"
