"""The Heads page, beside its pictures: numbers of heads, steps of one, what to leave out."""
