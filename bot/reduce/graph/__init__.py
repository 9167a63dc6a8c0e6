"""Programs represented as graphs."""
