"""Home: one real head on the visitor's sentence, the map of the site, the weights in use."""

import streamlit as st

from ui import attention, controls, models, pictures
from ui.limits import OverLimit

st.title("Attention Lab")
st.markdown(
    "See what attention computes. A PyTorch core written from scratch runs the weights of real "
    "models on what you type, and **every number on these pages is read from its tensors**."
)

encoder = models.preferred("encoder") or models.preferred("decoder")
if encoder is None:
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
else:
    controls_column, picture = st.columns([2, 3], gap="large")
    with controls_column:
        text = controls.text("Type a sentence", "home_text", controls.ANIMAL)
        choice = controls.head("home", "a", role="encoder", layer=3, head=1)
    with picture:
        try:
            with st.spinner(f"Loading {choice.entry.spec.title} …", show_time=True):
                run = attention.run(choice.entry.spec.name, text)
        except (OverLimit, ValueError) as error:
            st.warning(str(error), icon=":material/edit:")
        else:
            pictures.one_head(run, choice, key="home_map")
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
