"""Side by side: the attention weights of two heads on the visitor's sentence."""

import streamlit as st

from ui import attention, controls, messages, models, pictures, source, tables

st.title("Side by side")
st.markdown(
    "Each head of each layer decides anew how much every token takes from every other. "
    "Put two heads side by side and see how differently they look at one sentence."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    st.stop()

text = controls.text("Sentence", "side_text", controls.ANIMAL)
st.markdown(":small[Layers and heads count from 0, as in the code.]")
columns = st.columns(2, gap="large")
with columns[0]:
    first = controls.head("side_a", prefer="encoder", layer=3, head=1)
with columns[1]:
    second = controls.head("side_b", prefer="decoder", layer=3, head=1)
with st.columns(2, gap="large")[0]:
    colours = controls.colours("side_colours")

shown = []
columns = st.columns(2, gap="large")
with st.spinner("Running the model …", show_time=True):
    for which, column, choice in zip("ab", columns, (first, second), strict=True):
        try:
            run = attention.run(choice.entry.spec.name, text)
        except models.LOAD_ERRORS as error:
            with column:
                messages.problem(f"{choice.entry.spec.title}: {error}")
        else:
            shown.append((which, column, run, choice))
if not shown:
    st.stop()

scale = pictures.colour_scale([(run, choice) for _, _, run, choice in shown], colours)
for which, column, run, choice in shown:
    with column:
        pictures.one_head(run, choice, scale, key=f"side_{which}_map")
        pictures.strongest_pair(run, choice)

with st.expander("The numbers, and the data to take away"):
    for (which, _, run, choice), column in zip(shown, st.columns(2, gap="large"), strict=False):
        with column:
            table = pictures.pairs(run, choice)
            st.text(choice.title)
            st.dataframe(table, hide_index=True, height=320)
            tables.download(
                "Download these weights (CSV)",
                table,
                f"{choice.entry.spec.name}_layer{choice.layer}_head{choice.head}.csv",
                key=f"side_{which}_csv",
            )

with st.expander("How to read this", expanded=True):
    st.markdown(
        "- A **row** is a query: the token that looks. A **column** is a key: the token looked "
        "at. Each row sums to 1. Both pictures share one colour scale.\n"
        "- A **decoder** (SmolLM2, GPT-2) may not look ahead: the hatched half is masked before "
        "the softmax, which is not the same as a small weight.\n"
        "- An **encoder** (MiniLM, BERT) fills the full square, and has `[CLS]` and `[SEP]` of "
        "its own. Heads with nothing to say often rest there; in a decoder, on the first token.\n"
        "- The two models cut text differently, so the same word can be one token here and two "
        "there. `␣` marks a space, `⏎` a new line, `⇥` a tab, `##` a piece that continues a word, "
        "`<F0>` a byte of a character, and `(2)` the second token of the same text.\n"
        "- A large weight says where a head looks, not what the model concludes from it."
    )

with st.expander("The code that computed these weights"):
    source.show("attention_core/attend.py", "attend")
