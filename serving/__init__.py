"""Models, recorded passes, job queues, compute slots and visitor limits, without Streamlit."""
