"""Heads: the attention weights of one head on the visitor's sentence, and of another beside it."""

import streamlit as st

from ui import attention, controls, models, pictures, source
from ui.limits import OverLimit

st.title("Heads")
st.markdown(
    "Each head of each layer decides anew how much every token takes from every other. "
    "Put two heads side by side and see how differently they look at one sentence."
)

if not models.ready():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    st.stop()

text = controls.text("Sentence", "heads_text", controls.ANIMAL)
st.caption("Layers and heads count from 0, as in the code.")
first_controls, second_controls = st.columns(2, gap="large")
with first_controls:
    first = controls.head("heads", "a", role="encoder", layer=3, head=1)
with second_controls:
    second = controls.head("heads", "b", role="decoder", layer=3, head=1)
whole_scale = st.toggle(
    "Colour scale from 0 to 1 (otherwise to the largest weight shown)",
    key="heads_whole_scale",
    bind="query-params",
)

try:
    with st.spinner("Running the model …", show_time=True):
        runs = [attention.run(c.entry.spec.name, text) for c in (first, second)]
except (OverLimit, ValueError) as error:
    st.warning(str(error), icon=":material/edit:")
    st.stop()

shown = list(zip((first, second), runs, strict=True))
largest = max(float(run.weights[c.layer, c.head].max()) for c, run in shown)
scale = 1.0 if whole_scale else largest
for which, column, (choice, run) in zip("ab", st.columns(2, gap="large"), shown, strict=True):
    with column:
        pictures.one_head(run, choice, key=f"heads_{which}_map", largest=scale)
        pictures.strongest_pair(run, choice)
st.caption(f"Both pictures share one scale: 0 to {scale:.3f}.")

with st.expander("The numbers, and the data to take away"):
    for which, column, (choice, run) in zip("ab", st.columns(2, gap="large"), shown, strict=True):
        with column:
            table = pictures.pairs(run, choice)
            st.text(choice.title)
            st.dataframe(table, hide_index=True, height=320)
            st.download_button(
                "Download these weights (CSV)",
                table.to_csv(index=False).encode(),
                file_name=f"{choice.entry.spec.name}_layer{choice.layer}_head{choice.head}.csv",
                mime="text/csv",
                key=f"heads_{which}_csv",
                on_click="ignore",
            )

with st.expander("How to read this", expanded=True):
    st.markdown(
        "- A **row** is a query: the token that looks. A **column** is a key: the token looked "
        "at. Each row sums to 1.\n"
        "- A **decoder** (SmolLM2, GPT-2) may not look ahead: the hatched half is masked before "
        "the softmax, which is not the same as a small weight.\n"
        "- An **encoder** (MiniLM, BERT) fills the full square, and has `[CLS]` and `[SEP]` of "
        "its own. Heads with nothing to say often rest there; in a decoder, on the first token.\n"
        "- The two models cut text differently, so the same word can be one token here and two "
        "there. `␣` marks a leading space, `##` a piece that continues a word.\n"
        "- A large weight says where a head looks, not what the model concludes from it."
    )

with st.expander("The code that computed these weights"):
    source.attend()
