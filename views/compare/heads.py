"""Heads: every layer and head of a model on the visitor's sentence, and one of them opened."""

import streamlit as st

from ui import attention, controls, messages, models, pictures, source
from ui.heads import values
from ui.mosaic import Arrangement, arrange, mosaic

st.title("Heads")
st.markdown("Every head of every layer decides anew how much each token takes from every other.")

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    st.stop()

text = controls.text("Sentence", "heads_text", controls.ANIMAL)
choice = controls.head("heads", prefer="encoder", layer=3, head=1)
try:
    with st.spinner("Running the model …", show_time=True):
        run = attention.run(choice.entry.spec.name, text)
except models.LOAD_ERRORS as error:
    messages.problem(f"{choice.entry.spec.title}: {error}")
    st.stop()

n_heads = choice.entry.spec.n_heads


def open_head(number: int) -> None:
    """The head that was clicked becomes the open one."""
    st.session_state["heads_layer"], st.session_state["heads_head"] = divmod(number, n_heads)


reading = values.Reading()
packed = values.packed(run, reading, name="heads_mosaic")
mosaic(packed, key="heads_mosaic", on_open=open_head)
arrange(Arrangement(selected=choice.layer * n_heads + choice.head), key="heads_mosaic")

pictures.one_head(run, choice, pictures.colour_scale([(run, choice)]), key="heads_map")
pictures.strongest_pair(run, choice)

with st.expander("The code that computed these weights"):
    source.show("attention_core/attend.py", "attend")
