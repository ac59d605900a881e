"""Format numbers and token labels for use in sentences."""
