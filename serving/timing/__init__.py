"""Measurements of generation time with and without a KV cache."""
