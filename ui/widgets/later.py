"""A container that the script fills later; the elements below it wait (`top_down.js`)."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def later() -> DeltaGenerator:
    """An empty column. Streamlit doesn't send other empty containers to the browser."""
    return st.columns(1)[0]
