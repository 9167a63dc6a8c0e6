"""The only room that talks to GitHub."""
