"""The page "Tokens": three tokenizers, one word step by step, and the input of layer 0."""

import streamlit as st

from pages.learn.tokens import embeddings, splits, tokenizers
from pages.learn.tokens.questions import questions
from serving import models
from serving.limits import MAX_TOKENIZER_CHARACTERS, OverLimit
from ui.canvas.chips import chips
from ui.canvas.tensors import tensors
from ui.export import source, tables
from ui.text.formatting import format_number
from ui.widgets import controls, messages, quiz
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.section_picker import section_heading, section_picker

ONE_WORD, EMBEDDING = "How one word is cut", "From id to input embedding"

st.title("Tokens")
st.markdown(
    "A model doesn't read letters. A **tokenizer** cuts the text into pieces called tokens, and "
    "the model looks up a vector for each one. Each tokenizer has its own vocabulary of pieces."
)


def use_example(name: str) -> None:
    """Copy an example into the text box."""
    st.session_state["tokens_text"] = tokenizers.PRESETS[name]


with st.container(horizontal=True, vertical_alignment="bottom"):
    text = linked(
        st.text_area,  # several lines, because a line break is a token too
        "Text",
        value=tokenizers.NEXT_DAY,
        key="tokens_text",
        part="text",
        height=68,
        label_visibility="collapsed",
        max_chars=MAX_TOKENIZER_CHARACTERS,
    )
    controls.example_menu(tokenizers.PRESETS, "tokens_example", use_example)

try:
    readings = tokenizers.tokenize(text)
except OverLimit as error:
    messages.show_problem(error)
    text = tokenizers.NEXT_DAY
    readings = tokenizers.tokenize(text)
    st.markdown(f"Until then, the page shows “{tokenizers.NEXT_DAY}”.")
for method, problem in readings.problems.items():
    messages.show_problem(f"{method}: {problem}", icon=":material/download:")

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
    with st.expander("Compare the tokenizers"):
        st.table(readings.summary(text).set_index("tokenizer"))

shown = section_picker("tokens_part", (ONE_WORD, EMBEDDING))
if readings.by_method and ONE_WORD in shown:
    section_heading(ONE_WORD, shown)
    left, middle, right = st.columns([2, 1, 2], gap="medium")
    with left:
        methods = list(readings.by_method)
        method = linked(st.radio, "Tokenizer", methods, key="tokens_method", horizontal=True)
    reading = readings.by_method[method]
    cut = None
    try:
        words = splits.words(reading)
        if words:
            with middle:
                at = controls.number("Word", "tokens_word", len(words), 6)
            cut = splits.split_word(reading, words[at])
        else:
            messages.show_problem("The text has no words. Type at least one.")
    except ValueError as error:
        messages.show_problem(f"{error} Choose another word.")
    if cut is not None:
        with right:
            number = controls.number("Step", "tokens_step", len(cut.steps), 3)
        step = cut.steps[number]
        chips(
            splits.word_chips(words, at),
            title=f"Words, as split by {method}",
            key="tokens_words",
            hint="A token never spans two words. The framed word is tokenized below.",
            item_name="a word",
        )
        a_box = "a part of the word, and after the last step a token"
        hint = step.sentence
        chips(step.chips, title="Parts", key="tokens_step_chips", hint=hint, item_name=a_box)
        plain_table(cut.table, "All steps", max_rows=250)
        same = "the same ids" if cut.same else "**different** ids"
        ids = ", ".join(map(str, cut.ids))
        st.markdown(f"Token ids after the last step: {ids}. The tokenizer returns {same}.")
        if method == tokenizers.WORDPIECE:
            source.show_lines("pretrained/tokenization/step_by_step.py", "match_steps", "token id")
        else:
            source.show_lines(
                "pretrained/tokenization/step_by_step.py", "merge_steps", "first merge"
            )

if EMBEDDING in shown:
    st.header(EMBEDDING)
    if not models.available():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
    else:
        left, right = st.columns(2, gap="large")
        with left:
            entry = controls.model("tokens_model", None, prefer="encoder")
        try:
            with st.spinner("Loading the model …", show_time=True):
                embedded = embeddings.embed_text(entry.spec.name, text)
        except models.LOAD_ERRORS as error:
            messages.show_problem(error)
        else:
            with right:
                place = controls.number("Token", "tokens_place", len(embedded.tokens), 3)
            chips(
                embeddings.token_chips(embedded.tokens, place),
                title=f"{embedded.title}: the chosen token has a frame",
                key="tokens_embedded_chips",
                hint="The first columns of its vectors are shown below.",
            )
            tensors(embedded.panels(place), key="tokens_embedding", decimals=3)
            if embedded.position is None:
                st.markdown(
                    "This model adds no position vector. It rotates queries and keys inside "
                    "attention instead, so the token embedding alone enters layer 0."
                )
                source.show_lines(
                    "attention_core/model/transformer.py", "Transformer.embed", "token vectors"
                )
            else:
                source.show_lines(
                    "attention_core/model/transformer.py", "Transformer.embed", "plus position"
                )
            st.markdown(
                ":small[Check: the sum of the parts matches the actual input of layer 0. The "
                f"largest difference is **{format_number(embedded.difference, '.1e')}**, over "
                "all tokens "
                "and columns.]"
            )

with st.expander("How to read this"):
    st.markdown(
        "- `␣` is a space, `⏎` a line break, and `<F0>` one byte of a character that was split. "
        "`##` continues a word. The tokenizer itself added the dashed tokens.\n"
        "- **BPE** starts with single bytes and always joins the pair whose merge was learned "
        "first. It can encode any text, but rare scripts need many tokens.\n"
        "- **WordPiece** removes capitals and accents, then takes the longest piece in its "
        "vocabulary. A word that it can't build from pieces becomes `[UNK]`.\n"
        "- **Position embeddings** are learned vectors, one per position. Without them, attention "
        "couldn't distinguish different word orders."
    )

quiz.quiz("tokens", questions, readings)
