"""The page "Block": one layer step by step, its parts, and what layers do to a text."""
