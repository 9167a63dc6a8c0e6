"""What is loaded into the user's interpreter: standard library and torch only.

It is put on that interpreter's path by file (`boot.py`), never installed there, and speaks JSON lines over pipes.
"""
