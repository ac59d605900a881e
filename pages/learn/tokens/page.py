"""Tokens: one text through three tokenizers, a word cut step by step, what enters layer 0."""

import streamlit as st

from pages.learn.tokens import cuts, embeddings, tokenizers
from pages.learn.tokens.questions import questions
from serving import models
from serving.limits import MAX_TOKENIZER_CHARACTERS, OverLimit
from ui.canvas.chips import chips
from ui.canvas.tensors import tensors
from ui.export import source, tables
from ui.text.number_text import written
from ui.widgets import controls, messages, quiz
from ui.widgets.linked import linked
from ui.widgets.parts import heading, parts
from ui.widgets.plain_table import plain_table

ONE_WORD, EMBEDDING = "How one word is cut", "From id to input embedding"

st.title("Tokens")
st.markdown(
    "A model sees no letters: a tokenizer cuts the text into pieces, each looked up as a vector."
)


def use_example(name: str) -> None:
    """Put an example into the text box."""
    st.session_state["tokens_text"] = tokenizers.PRESETS[name]


with st.container(horizontal=True, vertical_alignment="bottom"):
    text = linked(
        st.text_area,  # of several lines: a new line is a token too
        "Text",
        value=tokenizers.NEXT_DAY,
        key="tokens_text",
        part="text",
        height=68,
        label_visibility="collapsed",
        max_chars=MAX_TOKENIZER_CHARACTERS,
    )
    controls.menu_of_examples(tokenizers.PRESETS, "tokens_example", use_example)

try:
    readings = tokenizers.read(text)
except OverLimit as error:
    messages.problem(error)
    text = tokenizers.NEXT_DAY
    readings = tokenizers.read(text)
    st.markdown(f"Until then the page shows: {tokenizers.NEXT_DAY}.")
for method, problem in readings.problems.items():
    messages.problem(f"{method}: {problem}", icon=":material/download:")

if readings.by_method:
    columns = st.columns(len(readings.by_method), gap="medium")
    for column, (method, reading) in zip(columns, readings.by_method.items(), strict=True):
        with column:
            chips(
                reading.chips,
                title=f"{method}: {len(reading.tokens)} tokens",
                key=f"tokens_chips_{method}",
            )
            rows = tables.height(reading.table, 213)
            st.dataframe(reading.table, hide_index=True, height=rows)
    with st.expander("The tokenizers compared"):
        st.table(readings.summary(text).set_index("tokenizer"))

shown = parts("tokens_part", (ONE_WORD, EMBEDDING))
if readings.by_method and ONE_WORD in shown:
    heading(ONE_WORD, shown)
    left, middle, right = st.columns([2, 1, 2], gap="medium")
    with left:
        methods = list(readings.by_method)
        method = linked(st.radio, "Tokenizer", methods, key="tokens_method", horizontal=True)
    reading = readings.by_method[method]
    cut = None
    try:
        words = cuts.words(reading)
        if words:
            with middle:
                at = controls.number("Word", "tokens_word", len(words), 6)
            cut = cuts.cut(reading, words[at])
        else:
            messages.problem("There is no word in this text: type one or more.")
    except ValueError as error:
        messages.problem(f"{error} Choose another word.")
    if cut is not None:
        with right:
            number = controls.number("Step", "tokens_step", len(cut.steps), 3)
        step = cut.steps[number]
        chips(
            cuts.word_chips(words, at),
            title=f"Words of {method}",
            key="tokens_words",
            hint="No token crosses the border of a word. The framed one is cut below.",
            a_box="a word",
        )
        a_box = "a part of the word; after the last step it is a token"
        hint = step.sentence
        chips(step.chips, title="Parts", key="tokens_step_chips", hint=hint, a_box=a_box)
        plain_table(cut.table, "Every step of the cut", most=250)
        same = "the same" if cut.same else "NOT the same"
        ids = ", ".join(map(str, cut.ids))
        st.markdown(f"Ids at the end: {ids}; {same} as the tokenizer's own.")
        if method == tokenizers.WORDPIECE:
            source.step("pretrained/tokenization/step_by_step.py", "match_steps", "token id")
        else:
            source.step("pretrained/tokenization/step_by_step.py", "merge_steps", "first merge")

if EMBEDDING in shown:
    st.header(EMBEDDING)
    if not models.ready():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
    else:
        left, right = st.columns(2, gap="large")
        with left:
            entry = controls.model("tokens_model", None, prefer="encoder")
        try:
            with st.spinner("Loading the model …", show_time=True):
                embedded = embeddings.embedded(entry.spec.name, text)
        except models.LOAD_ERRORS as error:
            messages.problem(error)
        else:
            with right:
                place = controls.number("Token", "tokens_place", len(embedded.tokens), 3)
            chips(
                embeddings.token_chips(embedded.tokens, place),
                title=f"{embedded.title}: the chosen token is framed",
                key="tokens_embedded_chips",
                hint="Its vectors are drawn below: the first columns of each.",
            )
            tensors(embedded.panels(place), key="tokens_embedding", decimals=3)
            if embedded.position is None:
                st.markdown(
                    "This model adds no position vector: its rotary positions turn queries and "
                    "keys inside attention. The token embedding alone enters layer 0."
                )
                source.step(
                    "attention_core/model/transformer.py", "Transformer.embed", "token vectors"
                )
            else:
                source.step(
                    "attention_core/model/transformer.py", "Transformer.embed", "plus position"
                )
            st.markdown(
                "Parts added up here, against what entered layer 0 in a whole forward pass: "
                f"largest difference **{written(embedded.difference, '.1e')}** over all tokens "
                "and columns."
            )

with st.expander("How to read this"):
    st.markdown(
        "- `␣` is a space, `⏎` a new line, `<F0>` one byte of a character that is split. `##` "
        "continues a word. Dashed chips were added by the tokenizer.\n"
        "- **BPE** starts from bytes and joins the neighbours whose merge was learned first. Every "
        "text can be written, but rare scripts need many tokens.\n"
        "- **WordPiece** takes the longest piece that is in its vocabulary, after lower-casing and "
        "dropping accents. What it cannot spell becomes `[UNK]`.\n"
        "- **Position embeddings** are one learned vector for each place: without them attention "
        "could not tell the order."
    )

quiz.quiz("tokens", questions, readings)
