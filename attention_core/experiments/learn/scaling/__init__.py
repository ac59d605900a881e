"""What the size of the scores does to a softmax."""
