"""The journey of a token: from the text through every layer to the next word, stop by stop."""

import re
from functools import partial

import streamlit as st

from pages.learn.journey import charts, endings, layers, training
from pages.learn.journey.questions import questions
from serving import models, one_pass, pass_picture, pass_places, pass_story
from serving.heads import TokenPair
from serving.token_text import isolated
from ui.canvas import one_pass as canvas
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.head_links import head_links
from ui.widgets.pair import choose_pair
from ui.widgets.parts import heading, parts
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings
from ui.widgets.walk import opened_at, walk

PICTURE = "journey_picture"
# The layer and head that are open at first: in them “it” reads from “animal”.
FIRST = {"decoder": (9, 2), "encoder": (3, 1)}
LAYERS, TRAINING, BOTH = "Through all layers", "What training changes", "Decoder and encoder"
BLOCK = "attention_core/model/block.py"
ORDERS = {"pre": "Block._run_pre_norm", "post": "Block._run_post_norm"}


def follow(n_tokens: int) -> None:
    """The visitor clicked a token in the picture."""
    said = str(st.session_state[PICTURE].get("followed") or "")
    if re.fullmatch(r"\d{1,3}", said) and int(said) < n_tokens:
        st.session_state["journey_query"] = int(said)


def take_the_other_kind(name: str) -> None:
    """Show the journey through this model."""
    st.session_state["journey_model"] = name


st.title("The journey of a token")
st.markdown(
    "How does a word become a guess at the next word, or a vector that knows its sentence? "
    "**Click a token to follow it**; every other lesson looks closer at one of its stops."
)
if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "journey_text", controls.ANIMAL)
with right:
    entry = controls.model("journey_model", None, prefer="decoder")
first_layer, first_head = FIRST[entry.spec.role]
with right, settings():
    of_pair = st.container()
    choice = controls.head_of(entry, "journey", layer=first_layer, head=first_head)
    layer, head = choice.layer, choice.head
try:
    with st.spinner("Running the model …", show_time=True):
        passed = one_pass.one_pass(entry.spec.name, text)
        opened_layer = one_pass.open_layer(passed.run, layer)
        opened_head = one_pass.open_head(passed.run, layer, head)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()
with of_pair:
    token, key = choose_pair(passed.run, choice, "journey", ("Token", "reads from"))

at = pass_places.led(st.query_params.get("journey_at", ""), layer, head)
if at != st.query_params.get("journey_at", ""):
    st.query_params["journey_at"] = at
place = pass_places.open_there(at, passed, layer, head)
place = place or pass_places.story(layer, head, token)
canvas.one_pass(
    pass_picture.picture(passed),
    {
        "picture": PICTURE,
        "place": opened_at("journey", passed, place),
        "lookOnly": True,
        "follow": True,
    },
    key=PICTURE,
    on_place_change=partial(walk, "journey", PICTURE, passed),
    on_followed_change=partial(follow, len(passed.run.tokens)),
)
told = pass_story.Told(entry.spec, passed, opened_layer, opened_head, token, key)
canvas.opened(*pass_story.opened(PICTURE, told), key=f"{PICTURE}_opened")

label = isolated(passed.run.tokens.labels[token])
other_role = "encoder" if entry.spec.role == "decoder" else "decoder"
other = models.preferred(other_role)
shown = parts("journey_part", (LAYERS, TRAINING, BOTH))
if LAYERS in shown:
    heading(LAYERS, shown)
    st.text(f"“{label}” in every layer: attention brings in what other tokens hand over.")
    show(charts.added_chart, layers.added(passed, token), key="journey_added")
    by_layer = layers.table(passed, token)
    forms = {"weight": "{:.3f}", layers.ATTENTION: "{:.4g}", layers.FEED_FORWARD: "{:.4g}"}
    forms |= {"goes out": "{:.4g}"}
    with st.expander("Every layer in numbers"):
        plain_table(by_layer, "One token in every layer", forms, most=388)
        tables.download("Download this table (CSV)", by_layer, "journey.csv", key="journey_csv")
    order = ORDERS[models.get(entry.spec.name).core.config.norm_order]
    source.step(BLOCK, order, "attention_sum = x", "mlp_sum = ")
if TRAINING in shown:
    heading(TRAINING, shown)
    numbers = training.learned(entry.spec.name)
    st.markdown(
        f"{entry.spec.title} has learned **{numbers.total:,}** numbers, and training changes "
        "nothing else. Queries, keys, values and attention weights are computed anew from every "
        "text."
    )
    stops = training.stops(passed, opened_layer, opened_head, token, numbers)
    plain_table(stops, "The stops, and what was learned for each", most=620)
    source.show("attention_core/costs/parameters.py", "parameters_by_part")
if BOTH in shown:
    heading(BOTH, shown)
    if other is None:
        st.info(f"There is no {other_role} on this machine to compare with.")
    else:
        try:
            with st.spinner("Running the other model …", show_time=True):
                beside = one_pass.one_pass(other, text)
        except models.LOAD_ERRORS as error:
            messages.problem(error)
        else:
            here = endings.ending(passed, token)
            there = endings.ending(beside, endings.same_token(token, passed, beside))
            both = (here, there) if other_role == "encoder" else (there, here)
            st.text(f"“{label}” in both: what a mask hides, and how the journey ends.")
            plain_table(endings.side_by_side(*both), "A decoder and an encoder")
            st.button(
                f"Follow it through the {other_role}",
                on_click=take_the_other_kind,
                args=(other,),
                key="journey_other",
            )
            source.step("attention_core/masks.py", "causal_mask", "mask = key_positions")

pair = TokenPair(passed.run.tokens, token, key)
head_links(choice, text, here="learn/journey", pair=pair)
with st.expander("How to read this"):
    st.markdown(
        "- **Next** leads from stop to stop; *Learn this* opens the lesson of a stop with your "
        "text, and the browser's Back button leads back here.\n"
        "- A **ribbon** is the vector of one token, as wide as the vector is long (logarithmic). "
        "Blue is what attention adds, orange what the feed-forward network adds.\n"
        "- **Token** is the one you follow, *reads from* the one whose value it takes.\n"
        "- A **decoder** sees only what stands before a token, and in the end says what comes "
        "next. An **encoder** sees the whole text, and ends with a vector for every token.\n"
        "- In the table, *reads most from* is the mean over all heads of a layer, the first token "
        "of a decoder and special tokens aside: heads with nothing to say rest there."
    )
quiz("journey", questions, passed, token)
