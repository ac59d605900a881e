"""What the heads of a model do, in numbers."""
