"""What is around the frame and the pages: what Streamlit does for every visitor, done otherwise."""
