"""One request, from the first run to `result.json`."""
