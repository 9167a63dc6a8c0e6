"""Renders what is posted: pure functions from a Report to Markdown, annotations and the notes of the gate."""
