"""A model of two attention layers that learns, step by step, to copy from a repeat."""
