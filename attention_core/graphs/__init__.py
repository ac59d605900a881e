"""Decode steps of one fixed shape: on a GPU a CUDA graph, started with one call for each token."""
