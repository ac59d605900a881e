"""Similarity: the dot product of word vectors, and why attention learns matrices beside it."""

import streamlit as st

from pages.learn.similarity import charts, heads, sections, words
from pages.learn.similarity.questions import questions
from serving import models, token_text
from ui.charts.bars import bars
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.parts import heading, parts
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.settings import settings

WORD_VECTORS = "pages/learn/similarity/experiment/word_vectors.py"

st.title("Similarity")
st.markdown(
    "A **dot product** turns two word vectors into one number. On its own it misleads: a long "
    "vector has large products in every direction."
)
if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "similarity_text", controls.ANIMAL)
with right:
    entry = controls.model("similarity_model", None, prefer="decoder")
spec = entry.spec
with right, settings():
    choice = controls.head_of_text(entry, "similarity", text)
name = spec.name
try:
    with st.spinner("Loading the model …", show_time=True):
        tokens = words.tokens_of(name, text)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()

fan, lists = st.columns([5, 6], gap="medium")
with lists:
    by_cosine, by_dot = st.columns(2, gap="medium")
    last = token_text.last_word(tokens)
    word = controls.token("Word: the arrow along the bottom", "similarity_word", tokens, last)
near = words.nearness(name, text, word)
with fan:
    label = tokens.labels[word]
    show(charts.fan_chart, near.points, label, near.length, key="similarity_fan")
for column, which, title, table in (
    (by_cosine, words.BY_COSINE, "cosine", near.by_cosine),
    (by_dot, words.BY_DOT, "dot product", near.by_dot),
):
    with column:
        listed = words.listed(table, title).assign(colour=charts.COLOURS[which])
        show(
            bars,
            listed,
            title,
            height=charts.LIST_HEIGHT,
            of=which,
            key=f"similarity_by_{title[:3]}",
        )
for sentence in near.sentences:
    st.text(sentence)
with st.expander("The numbers, the code"):
    plain_table(near.table, "Every token of the text", words.FORMS, most=250)
    tables.download("Download (CSV)", near.table, "similarity.csv", key="similarity_csv")
    source.step(WORD_VECTORS, "products", "dot products", "lengths", "cosines")

shown = parts(
    "similarity_part", (sections.REASONS, sections.MATRICES, sections.TEXTS, sections.DIM)
)
try:
    opened = heads.head(choice, text)
except models.LOAD_ERRORS as error:
    messages.problem(error)
else:
    if sections.REASONS in shown:
        heading(sections.REASONS, shown)
        sections.reasons(opened, word)
    if sections.MATRICES in shown:
        heading(sections.MATRICES, shown)
        sections.matrices(opened)
    if sections.TEXTS in shown:
        heading(sections.TEXTS, shown)
        sections.two_texts(opened, choice)
    if sections.DIM in shown:
        heading(sections.DIM, shown)
        sections.which_dim(opened)

with st.expander("How to read this"):
    st.markdown(
        "- **The fan**: lengths and angles to the chosen word are true. The nearer a line is to "
        "the arrow, the larger is its cosine (1 along it, 0 at a right angle). The farther right "
        "its end is, the larger is its dot product: long vectors win even at a wide angle.\n"
        "- **x** is what attention reads in the chosen layer. Every map has queries as rows and "
        "keys as columns.\n"
        "- **Weight parameters** are learned once and are the same for every text. **Attention "
        "weights** are computed from each text."
    )
quiz("similarity", questions)
