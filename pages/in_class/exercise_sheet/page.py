"""Exercise sheet: exercises on the lectures for the class's own sentence, with their solutions."""

from functools import partial

import streamlit as st

from pages.in_class.exercise_sheet import sheet
from serving import models
from ui.export import downloads
from ui.widgets import controls, messages
from ui.widgets.folded import folded
from ui.widgets.linked import linked
from ui.widgets.settings import settings

PRINT = '<button type="button" class="print-sheet">Print</button>'

st.title("Exercise sheet")
st.markdown(
    "Print exercises about attention for a sentence of your class. The students solve them with a "
    "pencil, and each group can get a variant with other numbers. The solutions come on sheets of "
    "their own, step by step."
)

if not models.ready("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row(align="bottom")
with left:
    text = controls.text("Sentence of the class", "exercise_sheet_text", controls.ANIMAL)
with right:
    variant = controls.seed("Variant", "exercise_sheet_variant", 1, width=110)
with right, settings():
    entry = controls.model("exercise_sheet_model", "decoder", prefer="decoder")
    kinds = linked(
        st.pills,
        "Exercises",
        list(sheet.KINDS),
        selection_mode="multi",
        default=list(sheet.KINDS),
        key="exercise_sheet_kinds",
    )

try:
    with st.spinner("Running the model …", show_time=True):
        printed = sheet.sheet(entry.spec.name, text, kinds, variant)
except (ValueError, *models.LOAD_ERRORS) as error:
    messages.problem(error)
    messages.end_page()
if not printed.exercises:
    messages.problem("There is no exercise on the sheet: choose one or more in the settings.")
    messages.end_page()

with right:
    st.html(PRINT)
    downloads.buttons(
        downloads.File("Save", partial(sheet.document, printed), sheet.FILE, "text/html"),
        key="exercise_sheet_save",
    )
st.html(sheet.STYLE)
st.html(
    '<div class="sheet-window" role="region" tabindex="0" aria-label="The sheet as it is printed">'
    f"{sheet.html(printed)}</div>"
)
st.markdown(
    ":small[Vectors and sizes are drawn by chance for each variant. Tokens and the real map are "
    "those of the model. All solutions are computed from the numbers that are printed: a student "
    "who calculates by hand gets the same digits.]"
)
folded("A link to this sheet", "exercise_sheet_link", downloads.link, "exercise_sheet")
