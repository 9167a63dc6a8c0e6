"""What a warm worker is asked besides running a candidate."""
