"""The failing tests that Buck names in a log, each above what it printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from bot.action.ci.failing_test import Failure, Seen, file_of_module, pytest_id
from bot.action.ci.tracebacks import Printed

# The target, then the test: a method with the module of its class, or what pytest calls it. Minutes and hours have colons.
_FAIL = re.compile(
    r"^[✗⚠✉] (?P<how>Fail|Fatal|Timeout): (?P<package>[\w./-]{1,300}):\S{1,200} - (?:(?P<name>\w{1,400}) \((?P<where>[\w.]{1,400})\)"
    r"|(?P<file>[\w./-]{1,300}\.py)::(?P<rest>\S.{0,800}?)) \((?:\d{1,9}:){0,2}\d{1,9}(?:\.\d{1,9})?m?s\)$"
)
# How Buck begins a line of its own: each state of a test has a mark.
_ENDS = ("✗ ", "✓ ", "⚠ ", "✉ ", "↻ ", "↷ ", "Tests finished: ", "Buck UI: ", "BUILD ")


def failures(lines: list[str], printed: Printed) -> Iterator[Failure]:
    """The failing tests in `lines`, with the last of the tracebacks `printed` below each."""
    heads = [i for i, line in enumerate(lines) if line.startswith(_ENDS)]
    for head, end in pairwise([*heads, len(lines)]):
        found = _FAIL.match(lines[head])
        if found is None:
            continue
        if found["file"]:
            test = f"{found['package']}/{found['file']}::{found['rest']}"
        else:
            module, _, cls = found["where"].rpartition(".")
            test = pytest_id(file_of_module(module), f"{cls}.{found['name']}")
        name = test.partition("::")[2].replace("::", ".")
        blocks = printed.between(head, end)
        if found["how"] == "Timeout":
            yield Failure(name, test, "", seen=Seen.TIMEOUT)
        else:
            yield Failure(name, test, blocks[-1].text if blocks else "", seen=Seen.ERROR if blocks else Seen.NAMED)
