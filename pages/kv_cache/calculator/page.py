"""The page "Calculator": KV cache size and how it drives the price per token."""

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
from ui.text.formatting import plural
from ui.widgets import code_block, messages
from ui.widgets.controls import example_menu, row
from ui.widgets.linked import linked
from ui.widgets.section_picker import section_picker
from ui.widgets.settings import settings
from ui.widgets.visit import unused_text_note

CORE = "attention_core/costs/serving.py"
MODELS = "All models in this setting"
GPT3 = "GPT-3, from small to 175B"
PRICE = "Why the price follows the context"

st.title("Calculator")
st.markdown(
    "For long texts, the KV cache can be larger than the model itself. Every token stores keys and "
    "values in every layer, so a few published numbers are enough to compute its size."
)

left, right = row()
with left, st.container(horizontal=True, vertical_alignment="bottom"):
    name = controls.choose_name()
    example_menu(controls.PRESETS, "calculator_example", controls.use_preset)
unused_text_note("the sizes of models and caches")
problem = None
with right, settings():
    try:
        model = controls.model(name)
    except ValueError as error:
        problem = error
    plain = linked(
        st.toggle,
        "Count as plain multi-head attention",
        False,
        key="calculator_plain",
        help="Every query head gets its own keys and values, and no token is dropped.",
    )
    batch = linked(
        st.select_slider, "Batch size (sequences)", setting.BATCHES, 8, key="calculator_batch"
    )
    n_tokens = linked(
        st.select_slider,
        "Context (tokens per sequence)",
        setting.CONTEXTS,
        32_768,
        key="calculator_context",
    )
    cache = linked(
        st.selectbox,
        "Number format of the cache",
        list(setting.CACHE_BITS),
        1,
        key="calculator_cache",
    )
    weights = linked(
        st.selectbox,
        "Number format of the weights",
        list(setting.WEIGHT_BITS),
        1,
        key="calculator_weights",
    )
    memory = linked(st.select_slider, "Memory (GB)", setting.MEMORIES, 80, key="calculator_memory")
if problem is not None:
    messages.show_problem(problem)
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
everything, family = numbers.all_models(chosen), numbers.gpt3_family(chosen)
shown = section_picker("calculator_part", (MODELS, GPT3, PRICE))
if MODELS in shown:
    st.header(MODELS)
    show(
        charts.models_chart,
        numbers.sizes_of_models(everything),
        chosen.model.name,
        chosen.description,
        key="calculator_models_chart",
    )
    with st.expander("Shapes, bytes and sources"):
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
            "The cache grows more slowly than the model: it scales with the number of parameters "
            f"to the power **{family.exponent:.2f}**. That's because the cache is proportional to "
            "layers × width, and the weights to layers × width². At the same context, *small* "
            "models therefore have the largest cache relative to their weights. Here each model "
            f"holds {plural(chosen.batch, 'sequence')} of 2,048 tokens, its full context."
        )
    st.dataframe(family.readable_table, hide_index=True)
if PRICE in shown:
    st.header(PRICE)
    st.dataframe(numbers.price(chosen), hide_index=True)
    st.markdown(
        f"{sentences.crossing(chosen)} To generate a token, the processor reads the weights once "
        "for the whole batch (the table lists one sequence's share) and each sequence's own cache. "
        "A larger batch spreads the cost of the weights, but not of the caches, and longer "
        "contexts leave memory for fewer sequences. "
        "The lecture's example: $30 per million tokens with 8k of context, $60 with 32k."
    )
    source.show_lines(CORE, "token_cost", "cached tokens", "parameters read")

with st.expander("How to read this"):
    st.markdown(
        "- A **GB** is 10⁹ bytes, as in the lecture.\n"
        "- With **GQA** and **MQA**, several query heads share a key/value head. **MLA** stores "
        "one latent and one rotary key for all heads. A **window** drops older tokens; in Gemma 2 "
        "and 3, only some of the layers have one.\n"
        "- In the chart of all models, the line from circle to diamond shows how much sharing, "
        "windows and latents save. An empty circle means that the context is longer than the one "
        "the model was published with.\n"
        "- **Operations** count a multiply and an add as two. For a mixture of experts, only the "
        "weights that a token uses are counted and read. Latent attention is counted in its "
        "absorbed form.\n"
        "- A real server needs more memory: we leave out unused ends of allocated blocks, scales "
        "of quantized numbers, shared prompts, activations and cross-attention."
    )

with st.expander("The code that computes the cache"):
    source.show_lines(CORE, "cache_bytes", "total bytes")
    formula = "kv_cache_bytes" if chosen.model.latent_size is None else "mla_cache_bytes"
    source.show_lines("attention_core/costs/formulas.py", formula, "bytes")

downloads.show(chosen)
