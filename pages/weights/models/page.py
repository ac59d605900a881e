"""Models: which weights are on this machine, and how to get more."""

import streamlit as st

from pages.weights.models import compatibility, downloads, here

st.title("Models")
st.markdown(
    "The pages run whatever weights this machine has. Bundled weights come with the installation; "
    "others are fetched from the Hugging Face hub, only when you ask."
)

st.header("Here now")
here.table()

st.header("Does your model load?")
compatibility.panel()

st.header("From the hub")
downloads.panel()
