"""Pictures drawn in the browser from bytes: maps, mosaics, lines, tensors."""
