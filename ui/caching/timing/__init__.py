"""Generation with and without a KV cache, timed in turns: what the page "Timing" shows."""
