"""Programs in the form of a graph."""
