"""Weights in 8 bits: a decode step reads a quarter of the bytes, and its numbers are rounded."""
