"""The passes on source."""
