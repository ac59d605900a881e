"""The page "Shapes": the eleven steps of multi-head attention, on an example or on a real layer."""
