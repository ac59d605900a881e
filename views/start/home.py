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

st.header("Where to go")
MAP = {
    "views/compare/heads.py": "Any two heads of any models on one sentence, side by side.",
    "views/generate/generate.py": "Tokens live, with the KV cache and without, and their time.",
    "views/models/models.py": "Which weights are here, and how to get more.",
}
for column, (page, what) in zip(st.columns(len(MAP)), MAP.items(), strict=True):
    with column, st.container(border=True):
        st.page_link(page)
        st.write(what)

st.header("Weights on this machine")
pictures.weights_table()
