"""The GitHub side."""
