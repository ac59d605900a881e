"""Downloads of the page "Variants": the cached arrays and its code."""

from __future__ import annotations

from functools import partial
from typing import Any

from pages.kv_cache.variants.key_readers import FEED_FORWARD, LAYERS, SEED, WIDTH, Ladder
from ui.export import downloads


def show(ladder: Ladder, text: str) -> None:
    """Show the page's file, code and link."""
    downloads.panel(
        "variants",
        downloads.npz("Cache of layer 0", partial(_arrays, ladder), "variants"),
        snippet=snippet(ladder.n_heads, text),
    )


def _arrays(ladder: Ladder) -> dict[str, Any]:
    return {
        f"{form.name}: {part.name}": part.values
        for form in ladder.forms.values()
        for part in form.parts
    }


def snippet(n_heads: int, text: str) -> str:
    """Python code that fills each cache and prints its size in bytes."""
    return (
        "import torch\n\n"
        "from attention_core import cache_bytes, llama_config\n"
        "from pages.kv_cache.variants.experiment.forms import (\n"
        "    build, ladder, random_base,\n)\n\n"
        f"config = llama_config(\n    vocab_size=256, context_length=4096, d_model={WIDTH}, "
        f"n_layers={LAYERS},\n    n_heads={n_heads}, n_kv_heads={n_heads}, "
        f"d_ff={FEED_FORWARD},\n)\n"
        f"base = random_base(config, seed={SEED})\n"
        f"ids = torch.tensor([list({text!r}.encode())])\n"
        "for form in ladder(config):\n"
        f"    model = build(base, form, seed={SEED})\n"
        "    cache = model.new_cache(1, ids.shape[1])\n"
        "    with torch.inference_mode():\n"
        "        model(ids, cache=cache)\n"
        "    print(form.name, cache.nbytes_used, "
        "cache_bytes(form.config, cache.length, bytes_per_value=4))"
    )
