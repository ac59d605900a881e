"""Sections of the page "Scaling"."""

import streamlit as st

from pages.learn.scaling import real_head
from serving import models
from ui.canvas.heatmap import ColourScale, Map, heatmap
from ui.export import source, tables
from ui.text.formatting import format_number
from ui.widgets import controls, messages
from ui.widgets.linked import linked
from ui.widgets.settings import settings

CORE = "pages/learn/scaling/experiment.py"
SIZE, REAL_HEAD = "2. How large is q·k?", "3. A real head without its scale"


def rescaled_head() -> None:
    """Show a head of a real model with a different scale."""
    st.header(REAL_HEAD)
    if not models.available():
        st.warning(models.NO_WEIGHTS, icon=":material/download:")
        return
    left, right = controls.row()
    with left:
        text = controls.text("Sentence", "scaling_text", controls.ANIMAL)
    with right, settings():
        how = linked(st.radio, "Scale", real_head.SCALES, 1, key="scaling_how", horizontal=True)
        factor = linked(
            st.select_slider,
            "Factor",
            list(real_head.FACTORS),
            "4",
            key="scaling_factor",
            disabled=how != real_head.FACTOR,
        )
    choice = controls.head("scaling", prefer="encoder", text=text)
    try:
        with st.spinner("Running the model …", show_time=True):
            head = real_head.rescaled_head(choice, text, how, factor)
    except models.LOAD_ERRORS as error:
        messages.show_problem(error)
    else:
        scale = ColourScale(float(max(head.original.max(), head.changed.max())))
        titles = [f"{choice.title}: q·k × {format_number(size, '.4g')}" for size in head.scales]
        maps = {"original": head.original, "changed": head.changed}
        for column, title, map_name in zip(st.columns(2, gap="large"), titles, maps, strict=True):
            with column:
                weights = Map(
                    maps[map_name], head.labels, title=title, causal=head.causal, scale=scale
                )
                heatmap(weights, key=f"scaling_{map_name}_map")
        st.table(head.summary, border="horizontal", hide_index=True)
        st.markdown(
            ":small[Means over all rows with at least two keys. The entropy is 0 if one key has "
            "all the attention, and log keys if all are equal. The gradient is 1 for equal weights "
            "and can be larger if two keys share the attention.]"
        )
        with st.expander("Every row"):
            st.dataframe(head.rows.round(4), hide_index=True, height=tables.height(head.rows, 320))
        source.show_lines(CORE, "weights_at_scale", "weights")
