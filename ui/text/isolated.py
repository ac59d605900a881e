"""Labels of tokens inside a sentence of the site."""


def isolated(label: str) -> str:
    """A label between marks that keep right-to-left text from reordering what is around it."""
    return f"\u2068{label}\u2069"
