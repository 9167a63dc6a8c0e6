"""Prints a graph as the script that is run and posted."""
