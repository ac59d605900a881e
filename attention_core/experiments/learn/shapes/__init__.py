"""Multi-head attention in eleven steps: what they make, and what each number was made of."""
