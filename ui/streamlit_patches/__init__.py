"""Patches for behavior of Streamlit's server that no option changes."""
