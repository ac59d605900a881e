"""What the pages share: model access, limits, pickers, charts, and the canvas heatmap."""
