"""One pass: a whole model at work on the visitor's text, in one picture that one can walk into."""

from contextlib import suppress
from dataclasses import asdict

import streamlit as st

from pages.start.one_pass import answers, tables, take_away, writing
from serving import models, one_pass, pass_picture, pass_story
from serving.heads import strongest
from serving.limits import MAX_SWITCHED_CHARACTERS
from serving.pass_places import led, open_there
from serving.token_text import isolated
from serving.written_on import write_on
from ui.canvas import one_pass as canvas
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.settings import settings
from ui.widgets.walk import opened_at

PICTURE = "one_pass_picture"
STORED_SHOWN = "one_pass_stored_shown"  # in the session: whether the stored picture was

st.title("One pass")
st.markdown(
    "A text goes in, every layer adds to it, and in the end the model says what comes next. "
    "**Click a layer to walk in**; Escape leads out again."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "one_pass_text", controls.ANIMAL)
with right:
    entry = controls.model("one_pass_model", None, prefer="decoder")
with right, settings():
    choice = controls.head_of(entry, "one_pass", layer=entry.spec.n_layers // 2, head=0)
    layer, head = choice.layer, choice.head
    switched = linked(
        st.text_input,
        "Switched off",
        "",
        key="one_pass_off",
        max_chars=MAX_SWITCHED_CHARACTERS,
        help="Heads (L3H1), feed-forward networks (F3), mask, scale; the picture has buttons.",
    )
    wanted = writing.settings(entry.spec.role)
try:
    off = one_pass.switched_off(switched, entry.spec.n_layers, entry.spec.n_heads)
except ValueError as error:
    messages.problem(error)
    off = ()

# Nobody waits for a model to load: until it has, the stored picture of the first text is there.
cold = not off and not models.loaded.is_kept(models.key(entry.spec.name))
if cold and STORED_SHOWN not in st.session_state:
    st.session_state[STORED_SHOWN] = True
    stored = pass_picture.stored(entry.spec.name, text)
    if stored is not None:
        canvas.one_pass(stored, {"picture": PICTURE}, key=PICTURE, **answers.of(PICTURE))
        # what cannot be loaded says so in the run that follows
        with suppress(*models.LOAD_ERRORS), st.spinner("Loading the model …", show_time=True):
            one_pass.one_pass(entry.spec.name, text)
        st.rerun()

try:
    with st.spinner("Running the model …", show_time=True):
        written = None
        passed = one_pass.one_pass(entry.spec.name, text, off)
        if wanted.n_new and not off:
            written = write_on(entry.spec.name, text, **asdict(wanted))
            passed = one_pass.grown_pass(entry.spec.name, text, written.ids)
        opened_layer = one_pass.open_layer(passed.run, layer)
        opened_head = one_pass.open_head(passed.run, layer, head)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()

at = led(st.query_params.get("one_pass_at", ""), layer, head)
if at != st.query_params.get("one_pass_at", ""):
    st.query_params["one_pass_at"] = at
place = open_there(at, passed, layer, head)
canvas.one_pass(
    pass_picture.picture(passed),
    {
        "picture": PICTURE,
        "off": list(off),
        "place": opened_at("one_pass", passed, place),
        **writing.header(wanted, written),
    },
    key=PICTURE,
    **answers.of(PICTURE, passed),
)
query, key = strongest(passed.run, layer, head)
told = pass_story.Told(entry.spec, passed, opened_layer, opened_head, query, key)
canvas.opened(*pass_story.opened(PICTURE, told), key=f"{PICTURE}_opened")

with st.expander("The picture as tables"):
    token = len(passed.run.tokens) - 1 if place is None else int(place["token"])
    label = isolated(passed.run.tokens.labels[token])
    st.text(f"Lengths of the vector of token {token}, “{label}”, through all layers:")
    lengths = {name: "{:.4g}" for name in tables.LENGTHS}
    plain_table(tables.layers(passed, token), "One token through all layers", lengths, most=388)
    likeliest = tables.next_tokens(passed)
    if likeliest is not None:
        plain_table(likeliest, "The likeliest next tokens", {"logit": "{:.4g}"})

take_away.show(passed, opened_head, off, place, choice)

with st.expander("How to read this"):
    st.markdown(
        "- A **ribbon** is the vector of one token on its way through all layers (the residual "
        "stream). It is as wide as the vector is long, on a logarithmic scale.\n"
        "- A **layer** has two halves. Blue: what attention adds to each token. Orange: what the "
        "feed-forward network adds. More colour is more, again on a logarithmic scale.\n"
        "- Under each layer stands what the model would say if it ended there (logit lens).\n"
        "- Walk in with a click or Enter: layer, head, matrix. **Arrows** go to the next layer, "
        "head, step or cell; **Escape** goes out. The framed cells are what the number was "
        "computed from.\n"
        "- On a touch screen a **swipe** to the left or right leads to the next layer or head.\n"
        "- **Present** shows the picture over the whole screen in larger type, for a room.\n"
        "- **Switch** a head or a feed-forward network off, or the mask, or the division by √d: "
        "the model runs again. Thin lines are what was there before.\n"
        "- **Let it write**: the model writes on, and the picture plays its passes. With the KV "
        "cache only the new token runs; the small marks are the stored keys and values that it "
        "reads. Without it all tokens run again. Multiplications are those of the matrix products; "
        "both times were measured on this server, and each pass is drawn as long as it took.\n"
        "- **Temperature** divides the logits before the softmax; **top-k** keeps the k likeliest "
        "tokens. A mark shows where a bar ended without them."
    )
