"""The models that pages show by default: the operator's choice first, then the site's own order."""

from __future__ import annotations

from pretrained import settings

VARIABLE = settings.DEFAULT_MODELS.name

# For many visitors: GPT-2 and BERT if they were downloaded, otherwise the small bundled models.
SMALL = "gpt2, bert-base-uncased, gpt2-novels, bert-novels"

# Maps a kind of model that a page requests to its role and to the models shown by default, in order
# of preference. "bert" and "gpt2" are for pages about these two architectures.
_PREFERRED = {
    "encoder": ("encoder", ("bert-base-uncased", "all-minilm-l6-v2", "bert-novels")),
    "decoder": ("decoder", ("gpt2", "smollm2-135m-instruct", "gpt2-novels")),
    "bert": ("encoder", ("bert-base-uncased", "bert-novels", "all-minilm-l6-v2")),
    "gpt2": ("decoder", ("gpt2", "gpt2-novels", "smollm2-135m-instruct")),
}
KINDS = tuple(_PREFERRED)


def preferred_order(kind: str) -> tuple[str, tuple[str, ...]]:
    """The role and the preferred models, best first, for one of `KINDS`."""
    role, names = _PREFERRED[kind]
    return role, (*settings.DEFAULT_MODELS.read(), *names)
