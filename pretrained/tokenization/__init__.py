"""Tokenizers, and the tokens of two of them aligned."""
