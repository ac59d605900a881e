"""Word pairs: search all heads of a model for one that links two words."""

import streamlit as st

from pages.compare.word_pairs import charts, downloads, questions, search
from serving import models, runs
from serving.heads import HeadId
from ui.charts.show import show
from ui.export import source
from ui.frame import sections
from ui.text.formatting import percent
from ui.text.isolated import isolated
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.head_links import TokenPair, head_links
from ui.widgets.placeholder import placeholder
from ui.widgets.plain_table import plain_table
from ui.widgets.section_picker import section_picker

HEADS = sections.script("compare/heads")
ROWS = 10
STRONGEST = "The heads with the largest weight on A"
AGAINST = "A or B, and is it more than chance?"

st.title("Word pairs")
claim_place = placeholder()

if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text(
        "Sentence",
        "word_pairs_text",
        controls.ANIMAL,
        examples=questions.QUESTIONS,
        on_select=questions.use_question,
    )
with right:
    entry = controls.model("word_pairs_model", None, prefer="encoder")
name = entry.spec.name
try:
    with st.spinner("Running the model …", show_time=True):
        run = runs.run(name, text)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
    messages.end_page()

units = search.units(run.tokens)
if sum(unit.is_word for unit in units) < 2:
    st.warning(
        "Type at least two words, so that one can attend to the other.", icon=":material/edit:"
    )
    messages.end_page()
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen_words = questions.choose(run, units)
    st.button("Swap query and A", icon=":material/swap_horiz:", on_click=questions.swap)
labels = [unit.label for unit in units]
result = search.search(run, units, *(labels.index(word) for word in chosen_words))

query, word_a, word_b = map(isolated, chosen_words)
page_charts = charts.charts(result)
table = search.table(result)
for column, letter in zip(st.columns(2, gap="large"), "AB", strict=True):
    with column:
        heads = page_charts[f"heads_{letter}"]
        show(heads.func, *heads.args, key=f"word_pairs_grid_{letter}")
if not result.is_other_visible:
    messages.show_problem(
        f"All weights on B are zero: “{word_b}” comes after “{query}”, and {run.title} can't look "
        "ahead.",
        icon=":material/visibility_off:",
    )

if result.is_visible:
    claim_place.text(
        f"In head {HeadId(*result.best)}, “{query}” gives {percent(result.weights.max())} of its "
        f"attention to “{word_a}”. No head of {run.title} gives it more."
    )
    if result.is_other_visible:
        st.text(f"No head gives “{word_b}” more than {percent(result.other_weights.max())}.")
else:
    claim_place.markdown("An encoder can look at every word, a decoder only at earlier ones.")
    messages.show_problem(
        f"{run.title} reads from left to right, so “{query}” can't look at “{word_a}”, which comes "
        "later. Swap the two words or choose an encoder.",
        icon=":material/swap_horiz:",
    )
metrics = st.columns(4)
n_heads = result.weights.size
metrics[0].metric("Largest weight on A", percent(result.weights.max()))
metrics[1].metric("Heads where A ranks first", f"{(result.rank == 1).sum()} of {n_heads}")
metrics[2].metric(
    "Heads preferring A, B",
    f"{(result.preference > 0).sum()}, {(result.preference < 0).sum()}",
)
metrics[3].metric("Weaker word pairs", f"{result.n_smaller} of {len(result.other_pairs)}")

shown = section_picker("word_pairs_part", (STRONGEST, AGAINST))
if result.is_visible and STRONGEST in shown:
    st.subheader(STRONGEST)
    shares = table.select_dtypes("floating").columns
    plain_table(table.head(ROWS), STRONGEST, dict.fromkeys(shares, "{:.5f}"))
    # the links use the first token of each word
    first_tokens = result.query.tokens[0], result.key.tokens[0]
    st.markdown("Open a head at this pair of words:")
    for column, row in zip(st.columns(5), table.head(5).itertuples(), strict=False):
        column.page_link(
            HEADS,
            label=str(HeadId(row.layer, row.head)),
            icon=":material/grid_on:",
            query_params={
                "heads_text": text,
                "heads_model": name,
                "heads_layer": str(row.layer),
                "heads_head": str(row.head),
                "heads_query": str(first_tokens[0]),
                "heads_key": str(first_tokens[1]),
            },
        )
    best = HeadChoice(entry, *result.best)
    st.markdown(f":small[{HeadId(*result.best)} on other pages:]")
    head_links(
        best, text, current_page="compare/word_pairs", pair=TokenPair(run.tokens, *first_tokens)
    )
if AGAINST in shown:
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("A or B?")
        against = page_charts["a_or_b"]
        show(against.func, *against.args, key="word_pairs_against")
    with right:
        st.subheader("Is it more than chance?")
        yardstick = page_charts["yardstick"]
        show(yardstick.func, *yardstick.args, key="word_pairs_yardstick")

downloads.show(run, result, table)

with st.expander("How to read this"):
    st.markdown(
        "- A word can consist of several tokens. Its weights are **summed over its key tokens** "
        "and **averaged over its query tokens**. Punctuation marks count as words.\n"
        f"- The *{search.RANK}* is 1 plus the number of words that get more weight than "
        "A. It ranks words, not tokens: a word's tokens are added up first, and a special token "
        "such as [CLS] counts as a word. *Contribution* is the weight times the length of the "
        "head's output for that token.\n"
        f"- A head *prefers A* if its weight on A is larger by at least {search.MARGIN}.\n"
        "- **If you search enough heads, you always find something.** Almost every pair of words "
        "has at least one strong head, especially if the words are neighbors. The gray bars show "
        "the same search for every other pair. If A lies among them, the result means little.\n"
        "- In “because it was too tired”, the word “it” has to look at two words: at “animal”, "
        "which it refers to, and at “was”, its verb. A single head would have to split its "
        "attention. Two heads can take one word each.\n"
        "- The lectures show two heads of BERT, L3H3 and L3H8. In one of them, “woman” attends "
        "most to “brush”, and in the other to “portrait”, which matches the two meanings of the "
        "sentence. The page *Models* explains how to get BERT. A weight shows where a head looks, "
        "not which meaning the model prefers. Nothing in the sentence about free speech says which "
        "of its two meanings is right."
    )

with st.expander("The code that computed these numbers"):
    source.show("pages/compare/word_pairs/experiment.py", "unit_weights")
    source.show("pages/compare/word_pairs/experiment.py", "strongest_head")
