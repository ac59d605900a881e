"""The page "Why attention": what reaches the last vector of a GRU and of attention, and when."""
