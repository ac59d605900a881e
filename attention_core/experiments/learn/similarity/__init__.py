"""How alike two words are, and why attention does not weigh words by that alone."""
