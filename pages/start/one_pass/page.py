"""One pass: a model's whole forward pass over a text, as one interactive picture."""

from contextlib import suppress
from dataclasses import asdict

import streamlit as st

from pages.start.one_pass import callbacks, downloads, sections, story, tables, writing
from pages.start.one_pass.locations import open_location, resolve_location
from pages.start.one_pass.navigation import sent_location
from pages.start.one_pass.questions import questions
from serving import models, one_pass
from serving.continuation import continue_text
from serving.flow import compute_flow, next_word_shares
from serving.heads import strongest_tokens
from serving.limits import MAX_DISABLED_CHARACTERS
from ui.canvas import one_pass as canvas
from ui.canvas.one_pass.claim import first_head, selected_token
from ui.canvas.one_pass.picture import picture
from ui.canvas.one_pass.stored import MARY, STORED
from ui.canvas.one_pass.stored import load_stored_picture as stored_picture
from ui.text.isolated import isolated
from ui.widgets import controls, messages
from ui.widgets.head_links import TokenPair, head_links
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings

PICTURE = "one_pass_picture"
STORED_SHOWN = "one_pass_stored_shown"  # session state: whether the stored picture was shown
AT = "one_pass_at"

st.title("One pass")
st.markdown("From your text to the next word. **Click a curve to open its head.**")

if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text(
        "Text",
        "one_pass_text",
        MARY,
        examples=(*STORED, *controls.SENTENCES[1:]),
    )
with right:
    entry = controls.model("one_pass_model", None, prefer="decoder")
with right, settings():
    of_head = st.container()
    switched = linked(
        st.text_input,
        "Switched off",
        "",
        key="one_pass_off",
        max_chars=MAX_DISABLED_CHARACTERS,
        help="Heads (L3H1), feed-forward networks (F3), mask or scale. The picture has buttons for "
        "this, too.",
    )
    wanted = writing.settings(entry.spec.role)
try:
    off = one_pass.parse_disabled(switched, entry.spec.n_layers, entry.spec.n_heads)
except ValueError as error:
    messages.show_problem(error)
    off = ()

# Until the model has loaded, show the stored picture of the text.
cold = not off and not models.by_key.is_cached(models.key(entry.spec.name))
if cold and STORED_SHOWN not in st.session_state:
    st.session_state[STORED_SHOWN] = True
    stored = stored_picture(entry.spec.name, text)
    if stored is not None:
        canvas.one_pass(
            stored, {"picture": PICTURE}, key=PICTURE, **callbacks.make_callbacks(PICTURE)
        )
        # errors are shown by the next run
        with suppress(*models.LOAD_ERRORS), st.spinner("Loading the model …", show_time=True):
            one_pass.one_pass(entry.spec.name, text)
        st.rerun()

try:
    with st.spinner("Running the model …", show_time=True):
        written = None
        passed = one_pass.one_pass(entry.spec.name, text, off)
        if wanted.n_new and not off:
            written = continue_text(entry.spec.name, text, **asdict(wanted))
            passed = one_pass.extended_pass(entry.spec.name, text, written.ids)
        first = first_head(passed, compute_flow(passed.run), next_word_shares(passed))
        with of_head:
            choice = callbacks.head(entry, first)
        layer, head = choice.layer, choice.head
        opened_layer = one_pass.layer_detail(passed.run, layer)
        opened_head = one_pass.head_detail(passed.run, layer, head)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()

at = resolve_location(st.query_params.get(AT, ""), layer, head)
if at != st.query_params.get(AT, ""):
    st.query_params[AT] = at
place = open_location(at, passed, layer, head)
canvas.one_pass(
    picture(passed),
    {
        "picture": PICTURE,
        "off": list(off),
        "place": sent_location("one_pass", passed, place),
        **writing.header(wanted, written),
    },
    key=PICTURE,
    **callbacks.make_callbacks(PICTURE, passed),
)
token = selected_token(passed) if place is None else int(place["token"])
if first is not None and (first.layer, first.head) == (layer, head):
    query, key = first.query, first.key
else:
    query, key = strongest_tokens(passed.run, layer, head)
told = story.StoryContext(entry.spec, passed, opened_layer, opened_head, query, key)
canvas.update_opened(*story.open_layer_data(PICTURE, told), key=f"{PICTURE}_opened")

sections.show(entry, passed, opened_layer, opened_head, token)

with st.expander("The picture as tables"):
    label = isolated(passed.run.tokens.labels[token])
    st.text(f"What “{label}” takes from other words, strongest first")
    plain_table(tables.edges(passed, token), "What one word takes from others", max_rows=388)
    likeliest = tables.next_tokens(passed)
    if likeliest is not None:
        plain_table(likeliest, "The most likely next words", {"logit": "{:.4g}"})
        plain_table(tables.shares(passed), "Shares of the top logit", max_rows=388)

downloads.show(passed, opened_head, off, place, choice)
head_links(
    choice, text, current_page="start/one_pass", pair=TokenPair(passed.run.tokens, query, key)
)

with st.expander("How to read this"):
    st.markdown(
        "- Each **line** is a token on its way through all layers (its residual stream). A "
        "**curve** is attention: it carries information from one token to another, and thicker "
        "curves matter more. A **dot** is what the feed-forward network adds.\n"
        "- A curve's thickness follows [Ferrando and Voita "
        "2024](https://arxiv.org/abs/2403.00824): how much closer a part brings a token's vector "
        "to its new value. The parts of an update add up to 100%. In BERT-like models, this is "
        "measured before the norm.\n"
        "- Curves that lead to the selected word are dark. **Point** at a word to see its route, "
        "at a curve to see its heads, or at a layer's number to see what the model would predict "
        "there. **Show more** draws weaker curves.\n"
        "- **Why this word?** lists what every head and every other part adds to a next word's "
        "logit. The scale of each norm is fixed, so the parts add up to the logit.\n"
        "- Click a curve or press Enter to open a layer, then a head, a matrix and a cell. The "
        "arrow keys go to the next word, curve, head or cell, and **Escape** goes back. Frames "
        "mark the cells that a number was computed from.\n"
        "- On a touch screen, swipe left or right for the next layer or head.\n"
        "- **Switch off** a head, a feed-forward network, the mask or the division by √d, and the "
        "model runs again. A mark shows where each bar ended before.\n"
        "- **Continue writing** makes the picture grow word by word. With the KV cache, only the "
        "new line is computed, and the stored keys and values light up when they're read. Times "
        "are measured on this server.\n"
        "- **Temperature** divides the logits before the softmax. **Top-k** keeps only the k most "
        "likely tokens."
    )
quiz("one_pass", questions, passed, token)
