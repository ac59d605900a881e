"""Format numbers and token labels for sentences."""
