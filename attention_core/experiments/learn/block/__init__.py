"""Whole layers: those of 2017, and the residual stream of a real model."""
