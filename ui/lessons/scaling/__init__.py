"""The page "Scaling": softmaxes of logits, q·k under four divisors, a head at another scale."""
