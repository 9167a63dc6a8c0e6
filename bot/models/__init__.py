"""The data that crosses from one package to another, and its JSON."""
