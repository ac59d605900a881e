"""Being written."""

import streamlit as st

st.title("Scaling")
