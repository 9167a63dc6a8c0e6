"""What Python prints around the tracebacks of a chain of exceptions."""

from bot.failure.traceback import HEADER, JOINTS

# What stands above the frames of an exception, and between two of a chain, is read there.
__all__ = ["ERRORS", "HEADER", "JOINTS"]

# How classes of errors are called: the ends of their names.
ERRORS = "(?:Error|Exception|Interrupt|Exit|Failed|Unsupported|Violation|Exceeded|LimitHit|SymNode)"
