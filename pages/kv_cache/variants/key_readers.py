"""One prompt in every form of attention, with the tensors that each one caches.

The weights are random, from a fixed seed, because no family of trained models is published in all
of these forms. All forms share the width, the number of layers and as many weights as possible.
The tokens are the bytes of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from serving import compute
from serving.cache import MODELS, cached
from serving.limits import MAX_PROMPT_TOKENS, check_text
from ui.text.formatting import plural

if TYPE_CHECKING:
    from attention_core import AttentionRecord, KVCache, Transformer, TransformerConfig

WIDTH, FEED_FORWARD = 576, 1536  # as in SmolLM2 135M
LAYERS = 2  # more layers cost time and show nothing new
HEADS = [8, 9, 12, 16]  # numbers of query heads that fit this width
BYTES = 256  # vocabulary size
LONGEST = 4096  # longest context that is timed, in tokens
HEADROOM = 16  # extra positions for the timed steps
WINDOW = 16
SEED = 0
ABSORBED = "MLA absorbed"


@dataclass(frozen=True)
class CachedHead:
    """The keys of one key/value head in layer 0's cache, or the latent or rotary key.

    values: (S, n). read_by: the query heads that read it.
    """

    name: str
    values: np.ndarray
    read_by: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """One form of attention after the prompt.

    measured_bytes: bytes of the stored rows in all layers. formula_bytes: bytes by the formula.
    n_stored: number of stored tokens. parts: keys in layer 0's cache, or latent and rotary key.
    shape: the numbers cached per token and layer, such as "2 × 9 heads × 64".
    """

    name: str
    shape: str
    numbers_per_token: int
    measured_bytes: int
    formula_bytes: int
    formula_16_bits: int
    n_stored: int
    parts: tuple[CachedHead, ...]


@dataclass(frozen=True)
class Ladder:
    """All forms of attention after one prompt: from MHA to MLA, then a window.

    text: the prompt. forms: all forms by name. mean_difference: largest difference in layer 0
    between the cached keys of any grouped form and the means of the multi-head keys.
    """

    text: str
    n_heads: int
    head_size: int
    n_tokens: int
    dtype: str
    forms: dict[str, Form]
    mean_difference: float

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(part.values.nbytes for form in self.forms.values() for part in form.parts)


@dataclass(frozen=True)
class LatentForms:
    """Latent attention after one prompt, in its expanded and absorbed forms.

    difference: largest logit difference. shapes: name of each tensor in layer 0 and its shape in
    both forms.
    """

    difference: float
    shapes: tuple[tuple[str, str, str], ...]


def names(n_heads: int) -> list[str]:
    """Names of the forms possible with `n_heads` query heads; doesn't load torch."""
    groups = [g for g in range(n_heads - 1, 1, -1) if n_heads % g == 0]
    return ["MHA", *(f"GQA {g}" for g in groups), "MQA", "MLA"]


def token_ids(text: str) -> list[int]:
    """The bytes of a prompt as token ids.

    Raises: OverLimit or ValueError for a prompt that is too long or empty.
    """
    check_text(text)
    ids = list(text.encode("utf-8", "replace"))
    if not ids:
        raise ValueError("The prompt is empty: type a word or more.")
    if len(ids) > MAX_PROMPT_TOKENS:
        raise ValueError(
            f"The prompt has {len(ids)} bytes, {len(ids) - MAX_PROMPT_TOKENS} over the limit of "
            f"{MAX_PROMPT_TOKENS}. Shorten it; your text is still in the box."
        )
    return ids


def config(n_heads: int) -> TransformerConfig:
    """The configuration of the multi-head model at the start of the ladder."""
    from attention_core import llama_config

    return llama_config(
        vocab_size=BYTES,
        context_length=LONGEST + HEADROOM,
        d_model=WIDTH,
        n_layers=LAYERS,
        n_heads=n_heads,
        n_kv_heads=n_heads,
        d_ff=FEED_FORWARD,
    )


@cached(cache=MODELS, key=lambda n_heads: n_heads)
def family(n_heads: int) -> dict[str, Transformer]:
    """The models of all forms, cached; they share most of their weights."""
    from attention_core.model.variants import with_latent_form
    from pages.kv_cache.variants.experiment.forms import (
        build,
        ladder,
        random_base,
        with_window,
    )

    base = random_base(config(n_heads), seed=SEED)
    forms = ladder(base.config)
    models = {form.name: build(base, form, seed=SEED) for form in forms}
    models[ABSORBED] = with_latent_form(models["MLA"], absorbed=True)
    short = with_window(forms[0], WINDOW)
    return {**models, short.name: build(base, short, seed=SEED)}


@cached(key=lambda text, n_heads: (text, n_heads))
def run_ladder(text: str, n_heads: int) -> Ladder:
    """Run every form on a prompt; the result is cached.

    Raises: OverLimit or ValueError for a prompt that is too long or empty.
    """
    import torch

    from pages.kv_cache.variants.experiment.forms import filled_cache
    from pages.kv_cache.variants.experiment.pool_kv_heads import mean_of_groups

    ids, models = token_ids(text), family(n_heads)
    prompt = torch.tensor([ids])
    caches = dict(
        compute.steps(
            (name, filled_cache(model, prompt))
            for name, model in models.items()
            if name != ABSORBED
        )
    )
    head_size = models["MHA"].config.d_head
    forms = {name: _form(name, models[name].config, cache) for name, cache in caches.items()}
    keys = caches["MHA"].layer(0)[0]
    differences = [
        (cache.layer(0)[0] - mean_of_groups(keys, models[name].config.kv_heads, dim=-3)).abs().max()
        for name, cache in caches.items()
        if name.startswith("GQA") or name == "MQA"
    ]
    return Ladder(
        text=text,
        n_heads=n_heads,
        head_size=head_size,
        n_tokens=len(ids),
        dtype=str(keys.dtype).removeprefix("torch."),
        forms=forms,
        mean_difference=float(torch.stack(differences).max()),
    )


@cached(key=lambda text, n_heads: (text, n_heads), size=lambda forms: 2_000)
def run_latent_forms(text: str, n_heads: int) -> LatentForms:
    """Run a prompt with expanded and absorbed latent attention; the result is cached.

    Raises: OverLimit or ValueError for a prompt that is too long or empty.
    """
    import torch

    ids, models = token_ids(text), family(n_heads)
    prompt, cache = torch.tensor([ids]), models["MLA"].new_cache(1, len(ids))
    with compute.slot(), torch.inference_mode():
        expanded = models["MLA"](prompt, cache=cache, record=True)
    with compute.slot(), torch.inference_mode():
        absorbed = models[ABSORBED](prompt, record=True)
    return LatentForms(
        difference=float((expanded.logits - absorbed.logits).abs().max()),
        shapes=_shapes(models["MLA"], cache, expanded.records[0], absorbed.records[0]),
    )


def _form(name: str, sizes: TransformerConfig, cache: KVCache) -> Form:
    from attention_core import cache_bytes
    from pages.kv_cache.variants.experiment.forms import AttentionForm, kv_head_readers

    first, second = (tensor[0].numpy() for tensor in cache.layer(0))
    width = cache.layer(0)[0].element_size()
    everyone = tuple(range(sizes.n_heads))
    if sizes.latent is None:
        shape = f"2 × {plural(sizes.kv_heads, 'head')} × {sizes.d_head}"
        parts = tuple(
            CachedHead(f"KV head {group}", values, heads)
            for group, (values, heads) in enumerate(
                zip(first, kv_head_readers(sizes.n_heads, sizes.kv_heads), strict=True)
            )
        )
    else:
        shape = f"{sizes.latent.kv_rank} latent + {sizes.latent.rope_head_size} rotary key"
        parts = (
            CachedHead("latent", first[0], everyone),
            CachedHead("rotary key", second[0], everyone),
        )
    return Form(
        name=name,
        shape=shape,
        numbers_per_token=AttentionForm(name, sizes).numbers_per_token,
        measured_bytes=cache.nbytes_used,
        formula_bytes=cache_bytes(sizes, cache.length, bytes_per_value=width),
        formula_16_bits=cache_bytes(sizes, cache.length),
        n_stored=cache.n_stored,
        parts=parts,
    )


def _shapes(
    model: Transformer, cache: KVCache, expanded: AttentionRecord, absorbed: AttentionRecord
) -> tuple[tuple[str, str, str], ...]:
    from attention_core.model.latent import LatentAttention

    attention = model.blocks[0].attention
    assert isinstance(attention, LatentAttention)  # no other attention has two forms
    latent, rope_key = cache.layer(0)
    w_uk, w_uv = attention.up_matrices()

    def shape(*tensors: object) -> str:
        return " and ".join(str(tuple(tensor.shape)) for tensor in tensors)  # type: ignore[attr-defined]

    return (
        ("cached latent and rotary key", shape(latent, rope_key), shape(latent, rope_key)),
        ("W_UK and W_UV of each head", shape(w_uk, w_uv), shape(w_uk, w_uv)),
        ("queries", shape(expanded.q), shape(absorbed.q)),
        ("keys read by attention", shape(expanded.k), shape(absorbed.k)),
        ("values read by attention", shape(expanded.v), shape(absorbed.v)),
        ("context of each head", shape(expanded.context), shape(absorbed.context)),
        ("scores", shape(expanded.scores), shape(absorbed.scores)),
    )
