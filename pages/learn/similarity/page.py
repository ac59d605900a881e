"""The page "Similarity": dot products of word vectors, and why attention needs W_q and W_k."""

import streamlit as st

from pages.learn.similarity import charts, heads, sections, words
from pages.learn.similarity.questions import questions
from serving import models, token_text
from ui.charts.bars import bars
from ui.charts.show import show
from ui.export import source, tables
from ui.widgets import controls, messages
from ui.widgets.plain_table import plain_table
from ui.widgets.quiz import quiz
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

WORD_VECTORS = "pages/learn/similarity/experiment/word_vectors.py"

st.title("Similarity")
st.markdown(
    "A **dot product** turns two word vectors into a single score. A long vector can "
    "outscore one that points in a more similar direction."
)
if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "similarity_text", controls.ANIMAL)
with right:
    entry = controls.model("similarity_model", None, prefer="decoder")
spec = entry.spec
with right, settings():
    choice = controls.head_for_text(entry, "similarity", text)
name = spec.name
try:
    with st.spinner("Loading the model …", show_time=True):
        tokens = words.tokens_of(name, text)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()

fan, lists = st.columns([5, 6], gap="medium")
with lists:
    by_cosine, by_dot = st.columns(2, gap="medium")
    last = token_text.last_word_index(tokens)
    word = controls.token("Word to compare (thick arrow)", "similarity_word", tokens, last)
near = words.nearness(name, text, word)
with fan:
    label = tokens.labels[word]
    show(charts.fan_chart, near.points, label, near.length, key="similarity_fan")
for column, which, title, table in (
    (by_cosine, words.BY_COSINE, "cosine", near.by_cosine),
    (by_dot, words.BY_DOT, "dot product", near.by_dot),
):
    with column:
        listed = words.bar_table(table, title).assign(colour=charts.COLOURS[which])
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
with st.expander("Numbers and code"):
    plain_table(near.table, "All tokens of the text", words.FORMS, max_rows=250)
    tables.download("Download CSV", near.table, "similarity.csv", key="similarity_csv")
    source.show_lines(WORD_VECTORS, "products", "dot products", "lengths", "cosines")

shown = section_picker(
    "similarity_part", (sections.REASONS, sections.MATRICES, sections.TEXTS, sections.DIM)
)
try:
    opened = heads.head(choice, text)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
else:
    if sections.REASONS in shown:
        section_heading(sections.REASONS, shown)
        sections.reasons(opened, word)
    if sections.MATRICES in shown:
        section_heading(sections.MATRICES, shown)
        sections.matrices(opened)
    if sections.TEXTS in shown:
        section_heading(sections.TEXTS, shown)
        sections.two_texts(opened, choice)
    if sections.DIM in shown:
        section_heading(sections.DIM, shown)
        sections.softmax_dims(opened)

with st.expander("How to read this"):
    st.markdown(
        "- **The fan** shows each vector's true length and its true angle to the chosen word. A "
        "smaller angle means a larger cosine (1 along the arrow, 0 at a right angle). The farther "
        "right a line ends, the larger its dot product, so a long vector can get a large dot "
        "product even at a wide angle.\n"
        "- **x** is the input of attention in the chosen layer. In every map, rows are queries and "
        "columns are keys.\n"
        "- **Weight parameters** are learned in training and are the same for every text. "
        "**Attention weights** are computed from each text."
    )
quiz("similarity", questions)
