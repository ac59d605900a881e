"""Masks before and after the softmax, and what dropout keeps."""
