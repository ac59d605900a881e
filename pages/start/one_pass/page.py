"""One pass: a whole model at work on the visitor's text, in one picture that one can walk into."""

import streamlit as st

from pages.start.one_pass import picture
from pages.start.one_pass.story import Told
from serving import models, one_pass, visit
from serving.limits import MAX_SWITCHED_CHARACTERS
from ui.widgets import controls, head_picture, messages
from ui.widgets.linked import linked
from ui.widgets.settings import settings

st.title("One pass")
st.markdown(
    "A text goes in, every layer adds to it, and in the end the model says what comes next. "
    "**Click a layer to walk in**; Escape leads out again."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    st.stop()

left, right = controls.row()
with left:
    text = controls.text("Text", "one_pass_text", controls.ANIMAL)
with right:
    entry = controls.model("one_pass_model", None, prefer="decoder")
with right, settings():
    layer = controls.number(
        "Layer", "one_pass_layer", entry.spec.n_layers, entry.spec.n_layers // 2, part=visit.LAYER
    )
    head = controls.number("Head", "one_pass_head", entry.spec.n_heads, 0, part=visit.HEAD)
    switched = linked(
        st.text_input,
        "Switched off",
        "",
        key="one_pass_off",
        max_chars=MAX_SWITCHED_CHARACTERS,
        help="Heads (L3H1), feed-forward networks (F3), mask, scale; the picture has buttons.",
    )
try:
    off = one_pass.switched_off(switched, entry.spec.n_layers, entry.spec.n_heads)
except ValueError as error:
    messages.problem(error)
    off = ()
try:
    with st.spinner("Running the model …", show_time=True):
        passed = one_pass.one_pass(entry.spec.name, text, off)
        opened_layer = one_pass.open_layer(passed.run, layer)
        opened_head = one_pass.open_head(passed.run, layer, head)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    st.stop()

PICTURE = "one_pass_picture"


def walk() -> None:
    """Where the visitor has walked to stands in the settings and in the address."""
    place = picture.place_of(str(st.session_state[PICTURE].get("place") or ""))
    if place is not None:
        st.session_state["one_pass_layer"] = place["layer"]
        st.session_state["one_pass_head"] = place["head"]
        st.query_params[picture.PLACE] = picture.written(place)


def switch() -> None:
    """What was switched in the picture stands in the settings and in the address."""
    asked = str(st.session_state[PICTURE].get("switched") or "")
    st.session_state["one_pass_off"] = "" if asked == "nothing" else asked


place = picture.place_of(st.query_params.get(picture.PLACE, ""))
picture.draw(passed, off, place, key=PICTURE, on_walk=walk, on_switch=switch)
query, key = head_picture.strongest(passed.run, controls.HeadChoice(entry, layer, head))
told = Told(entry.spec, passed, opened_layer, opened_head, query, key)
picture.open_in(PICTURE, told, text)
