"""User interface code that the pages share: widgets, canvases, charts, exports and the frame."""
