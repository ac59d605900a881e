"""Home: one real head on the visitor's sentence, the map of the site, the weights in use."""

import streamlit as st

from ui import attention, controls, messages, models, pictures

st.title("Attention Lab")
st.markdown(
    "See what attention computes. A PyTorch core written from scratch runs the weights of real "
    "models on what you type: **the weights, times and differences on these pages come from its "
    "tensors and its clock**, none is made up."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
else:
    controls_column, picture = st.columns([2, 3], gap="large")
    with controls_column:
        text = controls.text("Type a sentence", "home_text", controls.ANIMAL)
        choice = controls.head("home_a", prefer="encoder", layer=3, head=1)
    with picture:
        try:
            with st.spinner(f"Loading {choice.entry.spec.title} …", show_time=True):
                run = attention.run(choice.entry.spec.name, text)
        except models.LOAD_ERRORS as error:
            messages.problem(error)
        else:
            scale = pictures.colour_scale([(run, choice)])
            pictures.one_head(run, choice, scale, key="home_map")
            pictures.strongest_pair(run, choice)

LEARN = {
    "views/learn/why_attention.py": "What a recurrent network forgets, and how attention does not.",
    "views/learn/ladder.py": "From dot products to multi-head attention, rung by rung.",
    "views/learn/shapes.py": "The eleven shapes of multi-head attention, cell by cell.",
    "views/learn/masking.py": "Why the future is masked with minus infinity; what dropout keeps.",
    "views/learn/scaling.py": "What dividing by the root of the head size does to the softmax.",
    "views/learn/against_pytorch.py": "Our classes against PyTorch's own: outputs, time, memory.",
    "views/learn/block.py": "The whole layer: residuals, normalisation, feed-forward, predictions.",
    "views/learn/tokens.py": "How three models cut your text, byte by byte.",
}
COMPARE = {
    "views/compare/heads.py": "Every layer and head of a model at once; open one and look inside.",
    "views/compare/side_by_side.py": "Any two heads of any models, aligned by their characters.",
    "views/compare/ablate.py": "Switch heads off and see which predictions change.",
    "views/compare/word_pairs.py": "Which heads look from one word to another, or is it chance?",
    "views/compare/generated_tokens.py": "Where each new token looked, and why at the first one.",
}
CACHE = {
    "views/cache/what_is_recomputed.py": "Which numbers of a step were there before; what to keep.",
    "views/cache/inside_the_cache.py": "Real keys and values filling memory; crop, and a full one.",
    "views/cache/timing.py": "With a cache and without, step by step in turn, on this machine.",
    "views/cache/variants.py": "Heads that share keys: MHA to MLA, their bytes, time and drift.",
    "views/cache/calculator.py": "What a KV cache weighs, for 31 public models or your shapes.",
}
MORE = {
    "views/generate/generate.py": "Tokens live, with the KV cache and without, and their time.",
    "views/models/models.py": "Which weights are here, and how to get more.",
}
SECTIONS = {
    "Learn, in this order": LEARN,
    "Compare heads of real models": COMPARE,
    "The KV cache": CACHE,
    "Generate, and the weights": MORE,
}
for heading, pages in SECTIONS.items():
    st.header(heading)
    for first in range(0, len(pages), 4):
        for column, (page, what) in zip(
            st.columns(4), list(pages.items())[first : first + 4], strict=False
        ):
            with column, st.container(border=True, height="stretch"):
                st.page_link(page)
                st.write(what)

st.header("Weights on this machine")
pictures.weights_table()
