"""The forms of attention that shrink the cache."""
