"""Two networks with attention between them: an encoder that reads, a decoder that writes."""
