"""Python source as text and tree."""
