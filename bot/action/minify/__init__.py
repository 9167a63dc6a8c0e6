"""Carries out one request on the machine with the GPU: its checkout, account and interpreter, and the engine as a child process."""
