"""The rerun with dumping on, in the user's interpreter."""
