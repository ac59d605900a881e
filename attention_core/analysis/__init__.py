"""What a recorded pass tells: which words pass what on, and why a word is predicted."""
