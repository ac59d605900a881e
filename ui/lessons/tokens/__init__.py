"""The page "Tokens": one text through three tokenizers, a word cut, what enters layer 0."""
