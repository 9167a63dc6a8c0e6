"""What people hold instead of a script, and how each sort of it becomes a script that the engine can run."""
