"""Being written."""

import streamlit as st

st.title("Why attention")
