"""The style of the charts, and charts that several pages use."""
