"""Decides what an event asks for. Pure: facts in, decisions out."""
