"""Calculator: the bytes of a KV cache from a model's shapes, and what they make of the price."""

import streamlit as st

from pages.kv_cache.calculator import (
    charts,
    controls,
    downloads,
    numbers,
    sentences,
    setting,
)
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import code_block, messages
from ui.widgets.controls import menu_of_examples, row
from ui.widgets.linked import linked
from ui.widgets.parts import parts
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

CORE = "attention_core/costs/serving.py"
MODELS = "All models in this setting"
GPT3 = "GPT-3, from small to 175B"
PRICE = "Why the price follows the context"

st.title("Calculator")
st.markdown(
    "Every token that a model has seen leaves a key and a value in every layer. How many bytes "
    "that is follows from a few published numbers; for long texts it can be more than the weights."
)

left, right = row()
with left, st.container(horizontal=True, vertical_alignment="bottom"):
    name = controls.choose_name()
    menu_of_examples(controls.PRESETS, "calculator_example", controls.use_preset)
unused_text_note("the sizes of models and caches")
problem = None
with right, settings():
    try:
        model = controls.model(name)
    except ValueError as error:
        problem = error
    plain = linked(
        st.toggle,
        "As if plain multi-head attention",
        False,
        key="calculator_plain",
        help="Every query head gets keys and values of its own, and all tokens are kept.",
    )
    batch = linked(
        st.select_slider, "Sequences at once (batch)", setting.BATCHES, 8, key="calculator_batch"
    )
    n_tokens = linked(
        st.select_slider,
        "Tokens of each (context)",
        setting.CONTEXTS,
        32_768,
        key="calculator_context",
    )
    cache = linked(
        st.selectbox, "Cached numbers", list(setting.CACHE_BITS), 1, key="calculator_cache"
    )
    weights = linked(
        st.selectbox, "Weights", list(setting.WEIGHT_BITS), 1, key="calculator_weights"
    )
    memory = linked(st.select_slider, "Memory, GB", setting.MEMORIES, 80, key="calculator_memory")
if problem is not None:
    messages.problem(problem)
    messages.end_page()
chosen = setting.setting(
    model, plain=plain, batch=batch, n_tokens=n_tokens, cache=cache, weights=weights, memory=memory
)

chart, formula_column = st.columns(2, gap="large")
with formula_column:
    st.subheader(f"{setting.size(chosen.cache())} of cache")
    code_block.plain(sentences.formula(chosen))
    st.markdown(sentences.remark(chosen))
    st.table(numbers.summary(chosen), border="horizontal", hide_index=True)
with chart:
    show(
        charts.context_chart,
        numbers.lengths(chosen),
        numbers.levels(chosen),
        numbers.chosen_point(chosen),
        key="calculator_context_chart",
    )
everything, family = numbers.everything(chosen), numbers.gpt3_family(chosen)
shown = parts("calculator_part", (MODELS, GPT3, PRICE))
if MODELS in shown:
    st.header(MODELS)
    show(
        charts.models_chart,
        numbers.sizes_of_models(everything),
        chosen.model.name,
        chosen.in_words,
        key="calculator_models_chart",
    )
    with st.expander("The shapes, the bytes, and where each shape is published"):
        st.dataframe(
            everything,
            hide_index=True,
            height=420,
            column_config={"source": st.column_config.LinkColumn()},
        )
        tables.download(
            "Download all models (CSV)", everything, "kv_cache_of_models.csv", key="calculator_csv"
        )
if GPT3 in shown:
    st.header(GPT3)
    left, right = st.columns(2, gap="large")
    with left:
        show(charts.family_chart, numbers.sizes_of_family(family), key="calculator_family_chart")
    with right:
        st.markdown(
            f"Each at its full 2,048 tokens, {chosen.batch} at once. From model to model both "
            "curves climb. Yet against its parameters the cache grows only with their power "
            f"**{family.exponent:.2f}**: layers × width, where the weights are layers × width². "
            "At an equal context, the cache weighs most beside *small* models."
        )
    st.dataframe(family.readable, hide_index=True)
if PRICE in shown:
    st.header(PRICE)
    st.dataframe(numbers.price(chosen), hide_index=True)
    st.markdown(
        f"{sentences.crossing(chosen)} To make one token, a processor reads the weights, once for "
        "all sequences (listed is the share of one), and the sequence's own cache, for itself "
        "alone. The weights' share falls with every sequence that joins; the cache's does not, and "
        "long ones leave room for fewer. "
        "The lecture's example: $30 a million tokens with 8k of context, $60 with 32k."
    )
    source.step(CORE, "token_cost", "cached tokens", "parameters read")

with st.expander("How to read this"):
    st.markdown(
        "- **GB** are 10⁹ bytes, as the lecture counts and memory is sold.\n"
        "- **GQA** and **MQA**: several query heads share a key/value head. **MLA** keeps one "
        "latent and a rotary key for all heads. A **window** forgets older tokens; Gemma 2 and 3 "
        "have it in some layers only.\n"
        "- In the chart of all models, the line from circle to diamond is what sharing, windows "
        "and latents save. An empty circle: longer than that model's published context.\n"
        "- **Operations**: a multiply and an add count as two. Of a mixture of experts, only what "
        "a token uses is counted and read; latents are counted as absorbed.\n"
        "- **Left out**: unused ends of allocated blocks, scales of quantised numbers, shared "
        "prompts, activations, cross-attention. A real server needs more."
    )

with st.expander("The code that computes the cache"):
    source.step(CORE, "cache_bytes", "total bytes")
    formula = "kv_cache_bytes" if chosen.model.latent_size is None else "mla_cache_bytes"
    source.step("attention_core/costs/formulas.py", formula, "bytes")

downloads.show(chosen)
