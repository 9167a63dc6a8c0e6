"""What a warm worker is asked beside running a candidate."""
