"""Pictures that the browser draws from raw data: maps, mosaics, lines and tensors."""
