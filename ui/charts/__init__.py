"""The look of the charts: colours of the theme, and charts that several pages use."""
