"""What a step of a job tried more than once: of its attempts the last one counts.

Actions that repeat a command (nick-fields/retry and what was made of it) say after each attempt that failed why, and how it ended.
"""

from __future__ import annotations

import re

_STEP = "##[group]Run "
_FAILED = re.compile(r"(?:##\[warning\])?Attempt \d{1,6} failed\. Reason: ")
_ENDED = re.compile(r"(?:##\[(?:error|warning)\])?(?:Final attempt failed\. |Command completed after \d{1,6} attempt\(s\)\.$)")


def drop_earlier(text: list[str]) -> None:
    """Empty the lines of `text` that an attempt wrote after which the same step made another one, to its end."""
    step = failed = 0
    for i, line in enumerate(text):
        if line.startswith(_STEP):
            step = failed = i
        elif line.startswith(("##[", "A", "F", "C")):
            if _FAILED.match(line):
                failed = i
            elif failed > step and _ENDED.match(line):
                text[step:failed] = [""] * (failed - step)
                step = failed = i
