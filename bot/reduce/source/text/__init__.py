"""Python source as text and as a tree."""
