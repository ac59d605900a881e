"""Sections of the page "Variants": head sharing, cache sizes and latent shapes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.kv_cache.variants import charts, sharing
from pages.kv_cache.variants.key_readers import (
    LAYERS,
    SEED,
    WIDTH,
    Form,
    Ladder,
    LatentForms,
    names,
)
from ui.charts.show import show
from ui.export import tables
from ui.text.formatting import format_number, plural
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

FORM, HEADS_KEY = "variants_form", "variants_heads"


def choose_form(n_heads: int) -> str:
    """A slider over the forms; a form that doesn't fit these heads becomes MHA."""
    options = names(n_heads)
    if st.session_state.get(FORM, options[0]) not in options:
        st.session_state[FORM] = options[0]
    default = "GQA 4" if "GQA 4" in options else options[1]
    choice: str = linked(
        st.select_slider,
        "Form of attention, from MHA to MLA",
        options,
        default,
        key=FORM,
    )
    return choice


def form_sentence(ladder: Ladder, form: Form) -> str:
    """A sentence about the numbers that the chosen form caches."""
    whole = ladder.forms["MHA"]
    smaller = whole.numbers_per_token / form.numbers_per_token
    numbers_kept = f"{form.shape} = {form.numbers_per_token:,} numbers per token and layer"
    if form.name == "MHA":
        return f"Every query head has its own keys and values: {numbers_kept}."
    if form.name == "MLA":
        groups = form.numbers_per_token / (2 * ladder.head_size)
        return (
            f"All {ladder.n_heads} query heads share one latent and one rotary key: "
            f"{' + '.join(str(part.values.shape[1]) for part in form.parts)} = "
            f"{form.numbers_per_token} numbers per token and layer, {smaller:.2f} times less than "
            f"MHA. GQA would need {groups:.2f} groups to be that small."
        )
    share = ladder.n_heads // len(form.parts)
    return (
        f"{share} query heads share each key/value head: {numbers_kept}, {smaller:g} times less "
        "than MHA."
    )


def show_sharing(ladder: Ladder, form: Form) -> None:
    """Show the picture of heads and keys, and the same data as a table."""
    data = sharing.data(ladder, form, dark=st.context.theme.type == "dark")
    show(sharing.sharing, *data, key="variants_sharing")
    cut = "" if ladder.n_tokens <= sharing.MAX_ROWS else f" (the first {sharing.MAX_ROWS})"
    what = "the latent and the rotary key" if form.name == "MLA" else "keys"
    st.markdown(
        f":small[The dots at the top are query heads. The images show {what} in the cache of layer "
        f"0, one row for each of the {ladder.n_tokens} tokens{cut}. Blue is negative and orange is "
        "positive.]"
    )
    with st.expander("The same data as a table"):
        plain_table(parts_table(form), "The cache of layer 0 and the heads that read it")


def parts_table(form: Form) -> pd.DataFrame:
    """The contents of layer 0's cache and the heads that read them."""
    return pd.DataFrame(
        {
            "in the cache": part.name,
            "read by query heads": ", ".join(map(str, part.read_by)),
            "tokens": part.values.shape[0],
            "numbers per token": part.values.shape[1],
            "mean length": float(np.linalg.norm(part.values, axis=-1).mean()),
            "largest": float(np.abs(part.values).max()),
        }
        for part in form.parts
    )


def bytes_table(ladder: Ladder) -> pd.DataFrame:
    """Measured and computed bytes of every form after the prompt."""
    whole = ladder.forms["MHA"].measured_bytes
    return pd.DataFrame(
        {
            "form": form.name,
            "cached per token and layer": form.shape,
            "numbers": form.numbers_per_token,
            "tokens kept": form.n_stored,
            "measured, B": form.measured_bytes,
            "formula, B": form.formula_bytes,
            "B per token kept": form.measured_bytes // form.n_stored,
            "share of MHA": form.measured_bytes / whole,
            "in 16 bits, B": form.formula_16_bits,
        }
        for form in ladder.forms.values()
    )


def cache_bytes(ladder: Ladder, form: Form) -> None:
    """Show the cache sizes as bars, with a note on how they were measured."""
    show(charts.cache_sizes, charts.sizes(ladder), form.name, key="variants_bytes")
    equal = all(
        each_form.measured_bytes == each_form.formula_bytes for each_form in ladder.forms.values()
    )
    short = next(each_form for each_form in ladder.forms.values() if "window" in each_form.name)
    st.markdown(
        f":small[The bars are measured: bytes of the stored rows in {ladder.dtype} and {LAYERS} "
        f"layers after this prompt of {plural(ladder.n_tokens, 'token')}. The marks are computed "
        f"with the formula and {'agree in every row' if equal else '**differ**'}. The window keeps "
        f"{plural(short.n_stored, 'token')}.]"
    )


def bytes_numbers(ladder: Ladder) -> None:
    """Show the data of the bars as a table, with a note on the models and a download."""
    table = bytes_table(ladder)
    plain_table(table, "The bytes of every form", {"share of MHA": "{:.3f}"})
    st.markdown(models_note(ladder))
    tables.download(
        "Download the bytes (CSV)", table, "cache_of_variants.csv", key="variants_bytes_csv"
    )


def models_note(ladder: Ladder) -> str:
    """A note on the sizes of the models and the origin of their weights."""
    return (
        f":small[The models have width {WIDTH}, {LAYERS} layers and {ladder.n_heads} heads of size "
        f"{ladder.head_size}. Their weights are random (seed {SEED}), and the tokens are the bytes "
        "of the prompt. GQA and MQA average the key/value heads of the MHA model; in layer 0, "
        "their cached keys equal the means of MHA's to within "
        f"{format_number(ladder.mean_difference, '.0e')}. "
        "MLA has its own random query, key and value matrices. All other weights are shared.]"
    )


def latent_shapes(ladder: Ladder, latents: LatentForms) -> None:
    """Show the tensors of both forms of latent attention and whether they agree."""
    table = pd.DataFrame(latents.shapes, columns=["layer 0", "expanded", "absorbed"])
    st.dataframe(table, hide_index=True, key="variants_shapes")
    whole, latent = ladder.forms["MHA"], ladder.forms["MLA"]
    st.markdown(
        f"MLA caches **{latent.shape} = {latent.numbers_per_token}** numbers per token and layer; "
        f"MHA caches {whole.shape} = {whole.numbers_per_token:,}. The logits of the two forms "
        f"differ by at most **{format_number(latents.difference, '.1e')}** over the whole prompt."
    )
