"""The models that pages open with, by name: the site's own order, and what its host puts before."""

from __future__ import annotations

from pretrained import settings

VARIABLE = settings.FIRST_MODELS.name

# Small ones for a crowd, behind GPT-2 and BERT, which are there only if somebody fetched them.
SMALL = "gpt2, bert-base-uncased, gpt2-novels, bert-novels"

# What a page asks for, the role of such models, and those that it then shows first when the address
# names none. "bert" and "gpt2" are for pages about the two architectures, alone or as a pair.
_PREFERRED = {
    "encoder": ("encoder", ("bert-base-uncased", "all-minilm-l6-v2", "bert-novels")),
    "decoder": ("decoder", ("gpt2", "smollm2-135m-instruct", "gpt2-novels")),
    "bert": ("encoder", ("bert-base-uncased", "bert-novels", "all-minilm-l6-v2")),
    "gpt2": ("decoder", ("gpt2", "gpt2-novels", "smollm2-135m-instruct")),
}
KINDS = tuple(_PREFERRED)


def order(kind: str) -> tuple[str, tuple[str, ...]]:
    """The role of one of `KINDS` of models, and names in the order in which they come first."""
    role, names = _PREFERRED[kind]
    return role, (*settings.FIRST_MODELS.read(), *names)
