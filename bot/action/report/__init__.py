"""Result directories read as hostile data, and the comment that is posted."""
