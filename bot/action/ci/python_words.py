"""What Python prints around the tracebacks of a chain of exceptions."""

# Above the frames of an exception, and between two of a chain.
HEADER = "Traceback (most recent call last):"
JOINTS = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
# How classes of errors are called: the ends of their names.
ERRORS = "(?:Error|Exception|Interrupt|Exit|Failed|Unsupported|Violation|Exceeded|LimitHit|SymNode)"
