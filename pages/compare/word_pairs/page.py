"""Word pairs: in which heads one word looks at another, searched in the loaded model."""

import streamlit as st

from pages.compare.word_pairs import charts, downloads, questions, search
from serving import models, runs
from serving.heads import HeadId
from ui.charts.show import show
from ui.export import source
from ui.frame import sections
from ui.text.isolated import isolated
from ui.text.number_text import percent
from ui.widgets import controls, messages
from ui.widgets.head_choice import HeadChoice
from ui.widgets.head_links import TokenPair, head_links
from ui.widgets.parts import parts
from ui.widgets.plain_table import plain_table

HEADS = sections.script("compare/heads")
ROWS = 10
STRONGEST = "The heads with the largest weight on A"
AGAINST = "A or B, and is that much?"

st.title("Word pairs")
st.markdown(
    "Which heads look from one word to another? **Every head is searched**, and so are all other "
    "pairs of words."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text(
        "Sentence",
        "word_pairs_text",
        controls.ANIMAL,
        examples=questions.QUESTIONS,
        use=questions.ask,
    )
with right:
    entry = controls.model("word_pairs_model", None, prefer="encoder")
name = entry.spec.name
try:
    with st.spinner("Running the model …", show_time=True):
        run = runs.run(name, text)
except models.LOAD_ERRORS as error:
    messages.problem(error)
    messages.end_page()

units = search.units(run.tokens)
if sum(unit.is_word for unit in units) < 2:
    st.warning("Type at least two words: one looks at the other.", icon=":material/edit:")
    messages.end_page()
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen_words = questions.choose(run, units)
    st.button("Swap the first two", icon=":material/swap_horiz:", on_click=questions.swap)
labels = [unit.label for unit in units]
result = search.search(run, units, *(labels.index(word) for word in chosen_words))

query, word_a, word_b = map(isolated, chosen_words)
page_charts = charts.charts(result)
table = search.table(result)
for column, letter in zip(st.columns(2, gap="large"), "AB", strict=True):
    with column:
        heads = page_charts[f"heads_{letter}"]
        show(heads.func, *heads.args, key=f"word_pairs_grid_{letter}")
if not result.sees_other:
    messages.problem(
        f"B is all zeros: “{word_b}” comes after “{query}”, and {run.title} does not look ahead.",
        icon=":material/visibility_off:",
    )

if result.sees:
    st.text(
        f"“{query}” gives at most {percent(result.weights.max())} of its attention to A, "
        f"“{word_a}”: {HeadId(*result.best)}. To B, “{word_b}”: at most "
        f"{percent(result.other_weights.max())}."
    )
else:
    messages.problem(
        f"{run.title} reads from left to right: “{query}” cannot look at “{word_a}”, which comes "
        "later. Swap them, or choose an encoder.",
        icon=":material/swap_horiz:",
    )
metrics = st.columns(4)
n_heads = result.weights.size
metrics[0].metric("Largest weight on A", percent(result.weights.max()))
metrics[1].metric("Heads in which A comes first", f"{(result.rank == 1).sum()} of {n_heads}")
metrics[2].metric(
    "Heads more on A, more on B",
    f"{(result.preference > 0).sum()}, {(result.preference < 0).sum()}",
)
metrics[3].metric("Other pairs that end lower", f"{result.beaten} of {len(result.others)}")

shown = parts("word_pairs_part", (STRONGEST, AGAINST))
if result.sees and STRONGEST in shown:
    st.subheader(STRONGEST)
    shares = table.select_dtypes("floating").columns
    plain_table(table.head(ROWS), STRONGEST, dict.fromkeys(shares, "{:.5f}"))
    # of a word of several tokens the first
    first_tokens = result.query.tokens[0], result.key.tokens[0]
    st.markdown("Open one of them, at this pair of words:")
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
    head_links(best, text, here="compare/word_pairs", pair=TokenPair(run.tokens, *first_tokens))
if AGAINST in shown:
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("A or B?")
        against = page_charts["a_or_b"]
        show(against.func, *against.args, key="word_pairs_against")
    with right:
        st.subheader("Is that much?")
        yardstick = page_charts["yardstick"]
        show(yardstick.func, *yardstick.args, key="word_pairs_yardstick")

downloads.show(run, result, table)

with st.expander("How to read this"):
    st.markdown(
        "- A word may be several tokens: weights are **summed over its key tokens** and "
        "**averaged over its query tokens**. Punctuation marks count as words.\n"
        f"- *{search.RANK.capitalize()}*: 1 plus the number of words that get more weight than A. "
        "A special token such as [CLS] counts as a word; the tokens of a word are counted once, "
        "with their sum. *Contribution*: the weight times the length of what the head writes for "
        "that token.\n"
        f"- A head counts as *more on A* when its weight on A is larger by {search.MARGIN} or "
        "more.\n"
        "- **The largest of many heads, picked after looking at all, is a search**: some head is "
        "strong for almost any pair, above all for neighbours. The grey bars are the same search "
        "for every other pair of words. A find in their midst is no find.\n"
        "- In “because it was too tired” the word “it” needs two looks: at “animal”, for which it "
        "stands, and at “was”, whose subject it is. One head would have to share its row between "
        "both; two heads can take one each.\n"
        "- The lectures show two heads of BERT, L3H3 and L3H8: in one of them “woman” looks most "
        "at “brush”, in the other most at “portrait”, as two readings of one sentence. *Models* "
        "says how to get BERT; here you see whether the loaded model has such heads. A weight "
        "shows where a head looks, not which meaning the model holds; nothing in the sentence on "
        "free speech decides between its two readings."
    )

with st.expander("The code that computed these numbers"):
    source.show("pages/compare/word_pairs/experiment.py", "taken_from_units")
    source.show("pages/compare/word_pairs/experiment.py", "strongest_head")
