"""What an event asks for. Pure: facts in, decisions out."""
