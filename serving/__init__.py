"""What serves visitors: models, recorded passes, queues, turns and limits. No Streamlit in here."""
