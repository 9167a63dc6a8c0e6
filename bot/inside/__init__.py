"""Code that is loaded into the user's interpreter; it needs only the standard library and torch.

It is loaded there from a file (`boot.py`), never installed, and communicates in JSON lines over pipes.
"""
