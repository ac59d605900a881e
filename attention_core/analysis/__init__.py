"""Analyses of a recorded pass: what words pass on, and why a token is predicted."""
