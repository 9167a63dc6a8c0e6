"""Reads result directories as hostile data, and posts the comment."""
