"""Several prompts at once: one pass reads the weights once and makes a token for each of them."""
