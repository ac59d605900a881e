"""Analyses of a recorded pass: what tokens pass to each other, and why a token is predicted."""
