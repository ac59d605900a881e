"""Patches to Streamlit's server that no option covers."""
