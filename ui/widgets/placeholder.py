"""A container that the script fills later; the elements below it wait (`layout_shift.js`)."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def placeholder() -> DeltaGenerator:
    """An empty column. Streamlit doesn't send other empty containers to the browser."""
    return st.columns(1)[0]
