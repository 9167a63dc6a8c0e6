"""Programs as source text: slicing out what a repro needs, and reducing a whole script."""
