"""Home: one claim, the picture of a forward pass on the visitor's text, and four cards."""

import streamlit as st

from pages.start.home.entry_cards import entry_cards
from serving import models
from serving.one_pass import one_pass
from ui.canvas import one_pass as canvas
from ui.canvas.one_pass import picture as pass_picture
from ui.canvas.one_pass.stored import MARY, STORED, STORED_MODEL, load_stored_picture
from ui.widgets import controls, messages, quiz

EXAMPLES = (*STORED, "The trophy did not fit in the suitcase because it was too big")

st.title("Attention Lab")
st.markdown("See which words a language model uses to pick the next one.")
picture, away = None, None
if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    picture = load_stored_picture(STORED_MODEL, MARY)
else:
    left, right = controls.row()
    with left:
        text = controls.text("Type a text", "home_text", MARY, examples=EXAMPLES)
    with right:
        entry = controls.model("home_model", None, prefer="decoder")
    away = {"text": text, "model": entry.spec.name}
    picture = load_stored_picture(entry.spec.name, text)
    if picture is None:
        try:
            with st.spinner(f"Running {entry.spec.title} …", show_time=True):
                picture = pass_picture.picture(one_pass(entry.spec.name, text))
        except models.LOAD_ERRORS as error:
            messages.show_problem(error)
if picture is not None:
    # opening a layer or a head leads to the page "One pass"
    canvas.one_pass(picture, {"picture": "home_picture", "away": away}, key="home_picture")

entry_cards()
quiz.sync_answers()
