"""The bundled models for tests that compute what a page should show."""

import functools

import pretrained

ENCODER = "all-minilm-l6-v2"
DECODER = "smollm2-135m-instruct"


@functools.cache
def bundled(name: str) -> pretrained.Pretrained:
    """A copy of the tests' own, never the site's, so that a page that changed its model is found.

    Loaded once: SmolLM2 takes a second. Read-only, as everything that is shared.
    """
    return pretrained.load(name)
