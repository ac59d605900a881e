"""Side by side: compare any two heads, models or sentences, aligned token by token."""

from functools import partial

import streamlit as st

from pages.compare.side_by_side import comparison as side_by_side
from pages.compare.side_by_side import downloads, same_pair
from pages.compare.side_by_side import reference as beside
from serving import models, runs
from serving.limits import MAX_TEXT_CHARACTERS
from ui.canvas.component import picture_caption
from ui.export import source
from ui.widgets import controls, messages
from ui.widgets.head_links import TokenPair, head_links
from ui.widgets.linked import linked
from ui.widgets.placeholder import placeholder
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

MERGING = "pages/compare/side_by_side/experiment.py"
DIFFERENCE, TABLES = "Left minus right", "The numbers as tables"
REFERENCE = "Our core next to transformers"
WIDE = "The animal didn't cross the street because it was too wide"

st.title("Side by side")
st.markdown(
    "Two heads can read the same sentence in very different ways. Compare any two, from any model, "
    "and see their difference cell by cell."
)

if not models.available():
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Sentence", "side_by_side_text", controls.ANIMAL)
texts = [text, text]
with right, settings():
    if linked(st.toggle, "Another sentence on the right", False, key="side_by_side_two"):
        texts[1] = linked(
            st.text_input,
            "Sentence on the right",
            WIDE,
            key="side_by_side_text_b",
            max_chars=MAX_TEXT_CHARACTERS,
        )
    view = linked(
        st.radio,
        "Rows and columns",
        side_by_side.VIEWS,
        key="side_by_side_view",
        horizontal=True,
        help="Different models split a text differently. A shared unit is the text between two "
        "boundaries that both models have; a word is a sequence of letters and digits. Weights are "
        "summed over the keys of a group and averaged over its queries, so rows still sum to 1.",
    )
    colours = controls.colours("side_by_side_colours")
    renormalise = linked(
        st.toggle,
        "Renormalize the difference",
        False,
        key="side_by_side_rows",
        help="Divide each row of both sides by its total weight on the cells that can be compared, "
        "so that both rows sum to 1. Special tokens and cells that the decoder can't see don't "
        "count.",
    )
columns = st.columns(2, gap="large")
with columns[0]:
    first = controls.head("side_by_side_a", prefer="bert", text=texts[0])
    above, places = [same_pair.pair_container("a")], [placeholder()]
with columns[1]:
    second = controls.head("side_by_side_b", prefer="gpt2", text=texts[1], from_visit=False)
    above.append(same_pair.pair_container("b"))
    places.append(placeholder())

opened = []
with st.spinner("Running the model …", show_time=True):
    for which, place, choice, typed in zip("ab", places, (first, second), texts, strict=True):
        try:
            run = runs.run(choice.entry.spec.name, typed)
        except models.LOAD_ERRORS as error:
            with place:
                messages.show_problem(f"{choice.entry.spec.title}: {error}")
        else:
            opened.append((which, place, run, choice))
if not opened:
    messages.end_page()

comparison = None
if len(opened) == 2:
    both_runs = opened[0][2], opened[1][2]
    comparison = side_by_side.compare(both_runs, (first, second), view, renormalise)
    scale = side_by_side.scale([side.values for side in comparison.sides], colours)
    with columns[0]:
        pair = same_pair.choose(both_runs, first, view)
    pairs = pair, same_pair.show(above, both_runs, (first, second), pair, view)
    framed = view == side_by_side.TOKENS
    for (which, place, run, choice), side, cell in zip(
        opened, comparison.sides, pairs, strict=True
    ):
        entry = choice.entry.spec
        picture_caption().update(model=entry.title, name=entry.name, sentence=run.tokens.text)
        with place:
            frame = (
                (cell, partial(same_pair.choose_clicked, which, both_runs))
                if framed and cell
                else None
            )
            side_by_side.draw(side, scale, frame, key=f"side_by_side_{which}_map")
            linked_pair = cell and TokenPair(run.tokens, *cell)
            head_links(
                choice, run.tokens.text, current_page="compare/side_by_side", pair=linked_pair
            )
else:
    which, place, run, choice = opened[0]
    picture_caption().update(model=choice.entry.spec.title, name=choice.entry.spec.name)
    with place:
        side_by_side.draw_alone(run, choice, colours, key=f"side_by_side_{which}_map")

shown = section_picker("side_by_side_part", (DIFFERENCE, TABLES, REFERENCE))
if comparison is not None:
    picture_caption().clear()  # two models, and perhaps two sentences: the picture names both sides
if comparison is not None and DIFFERENCE in shown:
    section_heading(DIFFERENCE, shown)
    halves = st.columns([4, 7], gap="large")
    with halves[0]:
        if comparison.labels[0]:
            side_by_side.draw_difference(comparison, key="side_by_side_difference_map")
        else:
            st.text("These two texts have no token in common. Use a sentence that shares a word.")
    with halves[1]:
        side_by_side.summary(comparison)
        source.show_lines(MERGING, "merge_tokens", "averaged queries", "summed keys")
        source.show_lines(MERGING, "difference", "difference")
if TABLES in shown:
    side_by_side.numbers([(which, run, choice) for which, _, run, choice in opened], comparison)
if REFERENCE in shown:
    st.subheader(REFERENCE)
    if linked(
        st.toggle,
        "Compare every layer with the reference model",
        False,
        key="side_by_side_reference",
    ):
        beside.show([(run.model, run.tokens.text) for _, _, run, _ in opened])
        source.show_lines("pretrained/comparison.py", "largest_difference", "largest")

if comparison is not None:
    downloads.show(both_runs, (first, second), comparison, view, renormalise)

with st.expander("How to read this"):
    st.markdown(
        "- Each **row** is a query, the token that looks. Each **column** is a key. Rows sum to 1, "
        "and both maps share one color scale. Point at a cell to frame the matching cells in the "
        "other maps; their values appear below the maps.\n"
        "- **Orange** means that the left head gives more weight. **Blue** means that the right "
        "one does.\n"
        "- A **decoder** (GPT-2, SmolLM2) can't look ahead. The hatched half is masked before the "
        "softmax, so these cells have no weight at all. If the other side is an encoder, they're "
        "crossed out because they can't be compared.\n"
        "- An **encoder** (BERT, MiniLM) fills the whole square. The two models trained on novels "
        "split a text into the same tokens, so every cell has a partner. The published BERT and "
        "MiniLM add `[CLS]` and `[SEP]`, and heads that have nothing to add often put their weight "
        "there. In a decoder, they use the first token. That leaves less weight for the words; "
        "renormalize to compare what remains.\n"
        "- `the₂` is the second token with the text “the”. `⏎` is a line break, `##` marks a piece "
        "that continues a word, and `<F0>` is one byte of a character. `␣` is a space, shown only "
        "where two tokens would otherwise look the same.\n"
        "- **Our core next to transformers**: differences around 10⁻⁶ are rounding errors, because "
        "sums are computed in a different order. Hidden states are larger numbers than weights, so "
        "their differences are larger too.\n"
        "- A large weight shows where a head looks, not what the model concludes from it."
    )

with st.expander("The code that computed these weights"):
    source.show("attention_core/attend.py", "attend")
