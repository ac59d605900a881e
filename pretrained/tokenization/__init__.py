"""Tokenizers, and the alignment of two tokenizations."""
