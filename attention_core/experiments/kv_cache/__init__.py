"""The experiments on the key/value cache."""
