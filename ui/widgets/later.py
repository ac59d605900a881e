"""A place on the page that the script writes to further down."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def later() -> DeltaGenerator:
    """An empty place here; what stands below it waits for it (`ui/frame/top_down.js`).

    A column, because Streamlit sends no other empty container to the browser.
    """
    return st.columns(1)[0]
