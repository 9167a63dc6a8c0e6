"""The processes that answer questions about candidates."""
