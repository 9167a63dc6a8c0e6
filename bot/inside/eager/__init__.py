"""The eager control: the program with the compiler taken out."""
