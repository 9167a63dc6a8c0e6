"""All that is posted, as pure functions."""
