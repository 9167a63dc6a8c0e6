"""The rerun with dumping enabled, in the user's interpreter."""
