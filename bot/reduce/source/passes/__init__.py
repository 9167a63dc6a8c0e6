"""The passes on source text."""
