"""Models, recorded passes, queues, compute slots and limits for visitors, without Streamlit."""
