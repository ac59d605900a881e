"""Controls, messages and other parts of a page that visitors read or press."""
