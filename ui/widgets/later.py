"""A place that the script writes to further down; what stands below it waits (`top_down.js`)."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def later() -> DeltaGenerator:
    """An empty place here: a column, as Streamlit sends no other empty container to the browser."""
    return st.columns(1)[0]
