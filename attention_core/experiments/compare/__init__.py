"""The experiments on the heads of one or two models."""
