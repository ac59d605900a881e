"""Sections of the page "Variants": who reads what, its bytes, and the latent in shapes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.kv_cache.variants import charts, sharing
from pages.kv_cache.variants.looks import LAYERS, SEED, WIDTH, Form, Ladder, LatentForms, names
from ui.charts.show import show
from ui.export import tables
from ui.text.number_text import counted, written
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

FORM, HEADS_KEY = "variants_form", "variants_heads"


def choose_form(n_heads: int) -> str:
    """The slider over the ladder. A form that these heads cannot have becomes MHA."""
    options = names(n_heads)
    if st.session_state.get(FORM, options[0]) not in options:
        st.session_state[FORM] = options[0]
    default = "GQA 4" if "GQA 4" in options else options[1]
    chosen: str = linked(
        st.select_slider,
        "Who keeps keys and values: from MHA through GQA to MQA and MLA",
        options,
        default,
        key=FORM,
    )
    return chosen


def form_sentence(ladder: Ladder, form: Form) -> str:
    """One sentence about the chosen form, from its numbers."""
    whole = ladder.forms["MHA"]
    smaller = whole.numbers_per_token / form.numbers_per_token
    numbers_kept = f"{form.shape} = {form.numbers_per_token:,} numbers a token and layer"
    if form.name == "MHA":
        return f"Every query head has keys and values of its own: {numbers_kept}."
    if form.name == "MLA":
        groups = form.numbers_per_token / (2 * ladder.head_size)
        return (
            f"All {ladder.n_heads} query heads share one latent and one rotary key: "
            f"{' + '.join(str(part.values.shape[1]) for part in form.parts)} = "
            f"{form.numbers_per_token} numbers a token and layer, {smaller:.2f} times less than "
            f"MHA: as much as GQA with {groups:.2f} groups would keep."
        )
    share = ladder.n_heads // len(form.parts)
    return (
        f"{share} query heads share each key/value head: {numbers_kept}, {smaller:g} times less "
        "than MHA."
    )


def who_reads_what(ladder: Ladder, form: Form) -> None:
    """The picture of heads and keys, and the same as a table."""
    data = sharing.data(ladder, form, dark=st.context.theme.type == "dark")
    show(sharing.sharing, *data, key="variants_sharing")
    cut = "" if ladder.n_tokens <= sharing.MOST_ROWS else f" (the first {sharing.MOST_ROWS})"
    what = "the latent and the rotary key" if form.name == "MLA" else "keys"
    st.markdown(
        f":small[Top: query heads. Below: {what} in the cache of layer 0, a row for each of the "
        f"{ladder.n_tokens} tokens{cut}; blue below 0, orange above.]"
    )
    with st.expander("The same as a table"):
        plain_table(parts_table(form), "What lies in the cache of layer 0, and who reads it")


def parts_table(form: Form) -> pd.DataFrame:
    """What lies in the cache of layer 0, and who reads it."""
    return pd.DataFrame(
        {
            "in the cache": part.name,
            "read by query heads": ", ".join(map(str, part.read_by)),
            "tokens": part.values.shape[0],
            "numbers of a token": part.values.shape[1],
            "mean length": float(np.linalg.norm(part.values, axis=-1).mean()),
            "largest": float(np.abs(part.values).max()),
        }
        for part in form.parts
    )


def bytes_table(ladder: Ladder) -> pd.DataFrame:
    """Measured and computed bytes of every form after the prompt."""
    whole = ladder.forms["MHA"].measured
    return pd.DataFrame(
        {
            "form": form.name,
            "a token leaves in a layer": form.shape,
            "numbers": form.numbers_per_token,
            "tokens kept": form.n_stored,
            "measured, B": form.measured,
            "formula, B": form.formula,
            "B per token kept": form.measured // form.n_stored,
            "share of MHA": form.measured / whole,
            "in 16 bits, B": form.formula_16_bits,
        }
        for form in ladder.forms.values()
    )


def cache_bytes(ladder: Ladder, form: Form) -> None:
    """The bars of the cache sizes, and a note on how they were measured."""
    show(charts.cache_sizes, charts.sizes(ladder), form.name, key="variants_bytes")
    equal = all(each_form.measured == each_form.formula for each_form in ladder.forms.values())
    short = next(each_form for each_form in ladder.forms.values() if "window" in each_form.name)
    st.markdown(
        f":small[Bars: bytes of stored rows, {ladder.dtype}, {LAYERS} layers, measured on the "
        f"caches that this prompt of {counted(ladder.n_tokens, 'token')} filled. Marks: the formula"
        f"{', the same in every row' if equal else '; **it differs**'}. With a window, "
        f"{counted(short.n_stored, 'token')} {'is' if short.n_stored == 1 else 'are'} kept.]"
    )


def bytes_numbers(ladder: Ladder) -> None:
    """The table behind the bars, a note on the models, and a file to download."""
    table = bytes_table(ladder)
    plain_table(table, "The bytes of every form", {"share of MHA": "{:.3f}"})
    st.markdown(models_note(ladder))
    tables.download(
        "Download the bytes (CSV)", table, "cache_of_variants.csv", key="variants_bytes_csv"
    )


def models_note(ladder: Ladder) -> str:
    """A note on the models: their sizes, and where their weights come from."""
    return (
        f":small[The models: width {WIDTH}, {LAYERS} layers, {ladder.n_heads} heads of "
        f"{ladder.head_size}, weights drawn from seed {SEED}, not trained; tokens are the bytes of "
        "the prompt. GQA and MQA average the key/value heads of the MHA model (in layer 0 their "
        f"cached keys are the means of MHA's within {written(ladder.mean_difference, '.0e')}); MLA "
        "draws its own query, key and value matrices. All else is shared.]"
    )


def latent_shapes(ladder: Ladder, latents: LatentForms) -> None:
    """The tensors of both forms of latent attention in layer 0, and whether they agree."""
    table = pd.DataFrame(latents.shapes, columns=["layer 0", "expanded", "absorbed"])
    st.dataframe(table, hide_index=True, key="variants_shapes")
    whole, latent = ladder.forms["MHA"], ladder.forms["MLA"]
    st.markdown(
        f"A token leaves **{latent.shape} = {latent.numbers_per_token}** numbers, where MHA "
        f"leaves {whole.shape} = {whole.numbers_per_token:,}. Largest difference of the two forms "
        f"over all logits of the prompt: **{written(latents.difference, '.1e')}**."
    )
