"""The experiments of the first pages."""
