"""One pass: a whole model at work on the visitor's text, in one picture that one can walk into."""

import streamlit as st

from pages.start.one_pass import picture
from pages.start.one_pass.story import Told
from serving import models, one_pass
from ui.frame import sections
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
    switched = linked(
        st.text_input,
        "Switched off",
        "",
        key="one_pass_off",
        max_chars=200,
        help="Heads (L3H1), feed-forward networks (F3), mask, scale. The picture has buttons for it.",
    )
try:
    off = one_pass.switched_off(switched, entry.spec.n_layers, entry.spec.n_heads)
except ValueError as error:
    messages.problem(error)
    off = ()
try:
    with st.spinner("Running the model …", show_time=True):
        passed = one_pass.one_pass(entry.spec.name, text, off)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    st.stop()

PICTURE = "one_pass_picture"


def remember() -> None:
    """The head that was opened is the visit's."""
    asked = str(st.session_state[PICTURE].get("opened") or "")
    layer, _, head = asked.partition(" ")
    if layer.isdigit() and head.isdigit():
        st.session_state["one_pass_opened"] = int(layer), int(head)


def switch() -> None:
    """What was switched in the picture stands in the settings and in the address."""
    asked = str(st.session_state[PICTURE].get("switched") or "")
    st.session_state["one_pass_off"] = "" if asked == "nothing" else asked
    st.session_state["one_pass_was_switched"] = True


@st.fragment
def pictures() -> None:
    """To open a layer or a head runs this part alone."""
    if st.session_state.pop("one_pass_was_switched", False):
        st.rerun()  # the whole page: the model runs again
    picture.draw(passed, off, key=PICTURE, on_open=remember, on_switch=switch)
    layer, head = st.session_state.get("one_pass_opened", (entry.spec.n_layers // 2, 0))
    if layer < entry.spec.n_layers and head < entry.spec.n_heads:
        run = passed.run
        query, key = head_picture.strongest(run, controls.HeadChoice(entry, layer, head))
        told = Told(
            entry.spec,
            passed,
            one_pass.open_layer(run, layer),
            one_pass.open_head(run, layer, head),
            query,
            key,
        )
        picture.open_in(PICTURE, told, links(layer, head))


def links(layer: int, head: int) -> dict[str, str]:
    """The addresses of the lessons, with what the story is about."""
    return {folder: "/" + folder.rpartition("/")[2].replace("_", "-") for folder in sections.ICONS}


pictures()
