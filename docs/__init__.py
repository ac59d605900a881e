"""Pictures of the pages, and the program that takes them."""
