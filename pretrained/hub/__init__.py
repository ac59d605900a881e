"""Downloads from the Hugging Face Hub, which only start on request."""
