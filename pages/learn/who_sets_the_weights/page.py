"""The page "Who sets the weights": gradient descent on the visitor's text."""

import streamlit as st

from pages.learn.who_sets_the_weights import charts, numbers, run, sections
from pages.learn.who_sets_the_weights.questions import questions
from serving import models
from serving.limits import MAX_TRAINING_STEPS
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import plural
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table
from ui.widgets.progress import run_with_progress
from ui.widgets.quiz import quiz
from ui.widgets.run_form import run_form
from ui.widgets.section_picker import section_heading, section_picker
from ui.widgets.settings import settings

STEPS = "pages/learn/who_sets_the_weights/experiment.py"
RUN = "who_sets_the_weights_run"
TRAIN = "Train"

st.title("Who sets the weights")
st.markdown(
    "Nobody tells a head where to look. Training uses a single number, the **loss**: how badly "
    "the model predicted the next token. Each **step** moves every matrix a little so that the "
    "loss falls."
)
if not models.available("decoder"):
    st.warning(models.NO_WEIGHTS, icon=":material/download:")
    messages.end_page()

left, right = controls.row()
with left:
    text = controls.text("Text", "who_sets_the_weights_text", controls.ANIMAL)
with right:
    entry = controls.model("who_sets_the_weights_model", "decoder", prefer="gpt2")
spec = entry.spec
with right, settings():
    choice = controls.model_head(entry, "who_sets_the_weights", layer=4, head=6)

left, right = st.columns([5, 6], gap="medium")
with left:
    with run_form(RUN, "who_sets_the_weights_rate", "who_sets_the_weights_steps", verb=TRAIN):
        rate = linked(
            st.select_slider,
            "Learning rate",
            run.RATES,
            0.001,
            key="who_sets_the_weights_rate",
            width=140,
        )
        n_steps = linked(
            st.slider, "Steps", 1, MAX_TRAINING_STEPS, 1, key="who_sets_the_weights_steps", width=70
        )
    chosen = run.FineTuningSettings(spec.name, text, rate, n_steps)
    try:
        with st.spinner("Loading the model …", show_time=True):
            models.get(spec.name)
        trained = run_with_progress(
            RUN,
            chosen,
            lambda report: run.run(chosen, report),
            cached=run.run.is_cached(chosen),
            total=n_steps + 1,
            unit="passes",
            done=lambda result: (
                f"Training at a rate of {rate:g} took {result.seconds:.2f} s for "
                f"{plural(n_steps, 'step')}."
            ),
            verb=TRAIN,
        )
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
        messages.end_page()
    if trained is None:
        messages.end_page()
    show(charts.loss_chart, numbers.losses(trained), key="who_sets_the_weights_loss")
with right:
    sections.show_changes(trained)
st.markdown(sections.notice(trained))
with st.expander("Numbers and code"):
    table = numbers.parts(trained)
    forms = dict.fromkeys(("length", "gradient", "change", numbers.CHANGE), "{:.3g}")
    plain_table(table, "All parts of the model", forms, max_rows=300)
    tables.download("Download CSV", table, "weights.csv", key="who_sets_the_weights_csv")
    source.show_lines(STEPS, "Training.step", "losses", "mean loss", "gradients", "update")
    source.show(STEPS, "next_token_losses")

shown = section_picker("who_sets_the_weights_part", sections.PARTS)
try:
    for name, draw in (
        (sections.MAPS, sections.maps),
        (sections.CHAIN, sections.chain),
    ):
        if name in shown:
            section_heading(name, shown)
            draw(trained, choice.layer, choice.head)
except models.LOAD_ERRORS as error:
    messages.show_problem(error)
if sections.POSITIONS in shown:
    section_heading(sections.POSITIONS, shown)
    sections.positions(trained)
if sections.MEMORY in shown:
    section_heading(sections.MEMORY, shown)
    sections.memory(trained, choice.layer)

with st.expander("How to read this"):
    st.markdown(
        "- The **length** of a matrix is the square root of the sum of its squared numbers.\n"
        "- **Embeddings** are the token table, learned positions and the output matrix.\n"
        "- A **step** computes new weights = old weights − learning rate × gradient. Real training "
        "uses the same loss and gradient, but the Adam optimizer and millions of texts.\n"
        "- The steps change a **copy** of the model, which is deleted afterward. The other pages "
        "still use the original.\n"
        "- **MiniLM** can't be chosen here, because it has no output matrix and doesn't predict "
        "tokens. It was trained to give similar vectors to sentences with similar meanings."
    )
quiz("who_sets_the_weights", questions)
