"""Models: the weights on this machine, and how to get more."""

import streamlit as st

from pages.weights.models import available, compatibility, downloads

st.title("Models")
st.markdown(
    "Every page runs on the models installed on this machine. Some come with the installation; "
    "others are downloaded from the Hugging Face Hub, but only when you ask."
)

st.header("Installed models")
available.table()

st.header("Does your model load?")
compatibility.panel()

st.header("Download from the Hub")
downloads.panel()
