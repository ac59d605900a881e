"""Exercise sheet: printable exercises about the class's own sentence, with solutions."""

from functools import partial

import streamlit as st

from pages.teaching.exercise_sheet import sheet
from serving import models
from ui.export import downloads
from ui.widgets import controls, messages
from ui.widgets.lazy_expander import lazy_expander
from ui.widgets.linked import linked
from ui.widgets.settings import settings

PRINT = '<button type="button" class="print-sheet">Print</button>'

st.title("Exercise sheet")
st.markdown(
    "Type a sentence and print attention exercises about it. Your students solve them by hand, and "
    "each group can get its own variant with different numbers. The step-by-step solutions are "
    "printed on separate pages."
)

if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row(align="bottom")
with left:
    text = controls.text("Your sentence", "exercise_sheet_text", controls.ANIMAL)
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
    messages.show_problem(error)
    messages.end_page()
if not printed.exercises:
    messages.show_problem("The sheet is empty. Choose at least one exercise in the settings.")
    messages.end_page()

with right:
    st.html(PRINT)
    downloads.buttons(
        downloads.File("Save", partial(sheet.document, printed), sheet.FILE, "text/html"),
        key="exercise_sheet_save",
    )
st.html(sheet.STYLE)
st.html(
    '<div class="sheet-window" role="region" tabindex="0" aria-label="Print preview">'
    f"{sheet.html(printed)}</div>"
)
st.markdown(
    ":small[Each variant has its own random vectors and sizes. The tokens and the attention map "
    "come from the model. All solutions are computed from the printed numbers, so students who "
    "work by hand get the same digits.]"
)
lazy_expander("A link to this sheet", "exercise_sheet_link", downloads.link, "exercise_sheet")
