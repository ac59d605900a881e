"""What the pages share: widgets, canvases, charts, exports and the frame."""
