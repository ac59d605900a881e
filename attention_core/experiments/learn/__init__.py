"""The experiments of the lessons."""
