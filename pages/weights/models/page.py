"""Models: which weights are on this machine, and how to get more."""

import streamlit as st

from pages.weights.models import compatibility, downloads
from ui.widgets import head_picture

st.title("Models")
st.markdown(
    "The pages run whatever weights this machine has. Bundled weights come with the installation; "
    "others are fetched from the Hugging Face hub, only when you ask."
)

st.header("Here now")
head_picture.weights_table()

st.header("Does your model load?")
compatibility.panel()

st.header("From the hub")
downloads.panel()
