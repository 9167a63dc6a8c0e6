"""From the text of a failure to its Signature."""
