"""The ASGI side of the site: middleware and routes around Streamlit, wired together in app.py."""
