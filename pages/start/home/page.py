"""Home: a whole pass over the visitor's text, and the map of the site."""

from typing import Literal

import streamlit as st

from pages.start.home import paths
from serving import models, pass_picture
from serving.one_pass import one_pass
from ui.canvas import one_pass as canvas
from ui.frame import sections
from ui.widgets import controls, messages, quiz
from ui.widgets.folded import folded
from ui.widgets.head_links import head_links
from ui.widgets.settings import settings

st.title("Attention Lab")
st.markdown(
    "A real model reads a text and says what comes next. Type your own text, and **click a layer "
    "to walk in**. A PyTorch core written from scratch computes every number on these pages from "
    "the tensors that are named beside it."
)

picture, choice, text, layer, head = None, None, "", 15, 0
if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    picture = pass_picture.stored(pass_picture.STORED_MODEL, pass_picture.STORED_TEXT)
else:
    left, right = controls.row()
    with left:
        text = controls.text("Type a text", "home_text", controls.ANIMAL)
    with right:
        entry = controls.model("home_model", None, prefer="decoder")
    n_layers, name = entry.spec.n_layers, entry.spec.name
    with right, settings():
        choice = controls.head_of(entry, "home", layer=n_layers // 2, head=0)
    layer, head = choice.layer, choice.head
    picture = pass_picture.stored(name, text)
    if picture is None:
        try:
            with st.spinner(f"Running {entry.spec.title} …", show_time=True):
                picture = pass_picture.picture(one_pass(name, text))
        except models.LOAD_ERRORS as error:
            messages.problem(error)
if picture is not None:
    last = len(picture.header["labels"]) - 1
    numbers = {"token": last, "row": last, "column": 0, "told": -1}
    start = {"level": "whole", "matrix": "weights", "layer": layer, "head": head, **numbers}
    # who walks in does so on the page of this picture
    away = None if choice is None else {"text": text, "model": choice.entry.spec.name}
    header = {"picture": "home_picture", "away": away, "place": start}
    canvas.one_pass(picture, header, key="home_picture")
if choice is not None:
    st.markdown(f"Layer {choice.layer}, head {choice.head} of this text on other pages:")
    head_links(choice, text, here="start/home")

folded(paths.TITLE, "home_paths", paths.show)

LEARN = {
    "learn/journey": "One token from the text to the next word, stop by stop.",
    "learn/tokens": "How three models cut your text, byte by byte.",
    "learn/why_attention": "What a recurrent network forgets, and how attention does not.",
    "learn/similarity": "What a dot product finds alike; why attention learns matrices.",
    "learn/ladder": "From dot products to multi-head attention, rung by rung.",
    "learn/scaling": "What dividing by the root of the head size does to the softmax.",
    "learn/masking": "Why the future is masked with minus infinity; what dropout keeps.",
    "learn/why_several_heads": "What two maps keep and their average loses, and who does what.",
    "learn/shapes": "The eleven shapes of multi-head attention, cell by cell.",
    "learn/against_pytorch": "Our classes against PyTorch's own: outputs, time, memory.",
    "learn/position": "Why a model must be told the order, and how; longer texts.",
    "learn/attention_without_the_matrix": "FlashAttention: the same output without T × T weights.",
    "learn/block": "The whole layer: residuals, norms, feed-forward, predictions.",
    "learn/two_networks": "Encoder and decoder, and the attention between them.",
    "learn/who_sets_the_weights": "One step of training on your text: which matrices move.",
    "learn/watch_heads_form": "A small model learns live, and its heads appear.",
    "learn/cheaper_models": "Experts, several tokens at once, rewards, small models.",
}
COMPARE = {
    "compare/heads": "Every head of a model at once; open one and look inside.",
    "compare/side_by_side": "Any two heads of any models, aligned by their characters.",
    "compare/ablate": "Switch heads off and see which predictions change.",
    "compare/word_pairs": "Which heads look from one word to another, or is it chance?",
    "compare/generated_tokens": "Where each new token looked, and why at the first one.",
}
CLASS = {
    "in_class/glossary": "The words of the field, each with a picture.",
    "in_class/exercise_sheet": "Exercises on your sentence, with solutions.",
}
CACHE = {
    "kv_cache/what_is_recomputed": "Which numbers of a step were there before; what to keep.",
    "kv_cache/inside_the_cache": "Real keys and values filling memory; crop, and a full one.",
    "kv_cache/timing": "With a cache and without, step by step in turn, on this machine.",
    "kv_cache/variants": "Heads that share keys: MHA to MLA, their bytes, time and drift.",
    "kv_cache/calculator": "What a KV cache weighs, for 31 public models or your shapes.",
}
WHOLE = {
    "start/one_pass": "Every layer at work on your text, to walk into.",
    "generate/generate": "Tokens live, with the KV cache and without.",
    "weights/models": "Which weights are here, and how to get more.",
}


def cards(heading: str, pages: dict[str, str], n_columns: int, note: str = "") -> None:
    """A link to each page, with a line that says what is there; a note beside the heading."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.subheader(heading, width="content")
        if note:
            st.markdown(f":small[{note}]", width="content")
    if n_columns == 1:  # without columns Home sends fewer elements
        for page, description in pages.items():
            card(page, description, "content")
        return
    for first in range(0, len(pages), n_columns):
        row = list(pages.items())[first : first + n_columns]
        for column, (page, description) in zip(st.columns(n_columns), row, strict=False):
            with column:
                card(page, description, "stretch")


def card(page: str, description: str, height: Literal["content", "stretch"]) -> None:
    """A link to a page, and a line that says what is there; "stretch": as high as its column."""
    name = page.rpartition("/")[2]
    with st.container(height=height, gap=None, key=f"home_card_{name}"):
        st.page_link(sections.script(page))
        answered = len(quiz.questions_of([name]) & set(quiz.answers()))
        progress = f" **{answered} of {quiz.QUESTIONS} answered.**" if answered else ""
        st.markdown(f":small[{description}{progress}]")


left, middle, right = st.columns([2, 1, 1], gap="medium")
with left:
    questions = quiz.questions_of(page.rpartition("/")[2] for page in LEARN)
    n_answered, n_questions = len(questions & set(quiz.answers())), len(questions)
    cards("Learn, in this order", LEARN, 2, f"{n_answered} of {n_questions} questions answered")
with middle:
    cards("Compare heads", COMPARE, 1)
    cards("For a class", CLASS, 1)
with right:
    cards("The KV cache", CACHE, 1)
    cards("A whole model", WHOLE, 1)
    quiz.keep()
