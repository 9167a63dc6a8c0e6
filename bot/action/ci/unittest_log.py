"""The failing tests that unittest shows in a log."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.action.ci.failing_test import NO_HINT, Failure, Hint, file_of_module, pytest_id
from bot.action.ci.programs import Started
from bot.action.ci.pytest_log import MAX_SECTION, ShownFailure, id_by_frame
from bot.action.ci.pytest_text import as_traceback
from bot.action.ci.python_words import HEADER
from bot.action.ci.run_test import hinted

MAX_HEAD = 40
# The last lines of what is shown, where PyTorch's suite names the command of the test.
MAX_BELOW = 20

# unittest-xml-reporting puts seconds behind the first word, absl the parameters behind the name.
_HEAD = re.compile(
    r"^(?:ERROR|FAIL)(?: \[\d{1,9}\.\d{1,9}s\])?: (?P<name>\w+)(?: \(.{0,1000}?\))?? \((?P<where>[A-Za-z_]\w*(?:\.\w+)*)\)(?P<sub>.*)$"
)
_PROGRAM = re.compile(r"python[\d.]{0,6} (?P<file>(?:[\w./+-]{1,300}/)?test_\w{1,200}\.py)(?: |$)")
# How testtools and green name a test; the latter has no lines around it, and no words above its frames.
_DOTTED = re.compile(
    r"^(?:(?:ERROR|FAIL): |(?P<green>(?:Error|Failure) in ))(?P<where>[A-Za-z_]\w{0,200}(?:\.\w{1,200}){1,20})\.(?P<name>test\w{0,300})"
    r"(?P<sub>(?: \(.{0,1000}\))?)$"
)
_GREEN = ("Error in ", "Failure in ")
_HEADS = ("ERROR: ", "FAIL: ", "ERROR [", "FAIL [", *_GREEN)
# What unittest writes before it runs a test (with `-v`), and what the test prints behind it.
_BEGUN = re.compile(
    r"(?P<name>test\w{0,300}) \((?P<where>[A-Za-z_]\w{0,200}(?:\.\w{1,200}){1,20})\) \.\.\."
    r"(?! (?:ok|skipped|expected failure|unexpected success)\b)"
)
_DOUBLE, _SINGLE = "=" * 70, re.compile(r"-{10,70}$")


def running(line: str) -> str:
    """The id of the test that unittest, by `line`, was about to run; empty where there is none, or the test ended well."""
    found = _BEGUN.match(line) if line.startswith("test") else None
    if found is None:
        return ""
    module, _, cls = found["where"].removesuffix("." + found["name"]).rpartition(".")
    return pytest_id("" if module == "__main__" else file_of_module(module), f"{cls}.{found['name']}") if module else ""


def failures(lines: list[str]) -> Iterator[tuple[ShownFailure, Failure]]:
    """The failing tests in `lines`, each with its traceback, and where it is shown."""
    i = 0
    started = Started()
    while i < len(lines):
        match = _HEAD.match(lines[i]) or _DOTTED.match(lines[i]) if lines[i].startswith(_HEADS) else None
        if match is None:
            started.see(lines[i])
            i += 1
            continue
        # an excerpt may lack the line above, and have a shorter one below
        ruled = i > 0 and lines[i - 1] == _DOUBLE
        bare = match.groupdict().get("green") is not None
        heads = range(i + 1, min(i + (MAX_HEAD if ruled else 3), len(lines)))
        start = i if bare else next((j for j in heads if _SINGLE.match(lines[j])), None)
        if start is None:
            i += 1
            continue
        ends = (j for j in range(start + 1, len(lines)) if _ends(lines[j], bare=bare))
        end = next(ends, len(lines))
        body = "\n".join([HEADER, *lines[start + 1 : end]] if bare else lines[start + 1 : end])[-MAX_SECTION:]
        where, name, hint = match["where"], match["name"], NO_HINT
        # Python 3.11 and later name the method twice
        where = where.removesuffix("." + name)
        module, _, cls = where.rpartition(".")
        if name == "setUpModule":
            test = id_by_frame(name, body).partition("::")[0]
        elif module.startswith("unittest.") or not cls:  # a file that cannot be imported: `ERROR: test_x (unittest.loader._FailedTest...)`
            test = ""
        elif module in ("", "__main__"):  # a program that is run by its path
            run = (found[0] for line in lines[max(start, end - MAX_BELOW) : end] if (found := hinted(line)))
            test = next((each for each in run if each.endswith(f"::{cls}::{name}")), "") or id_by_frame(f"{cls}.{name}", body)
            if not test:
                program = _PROGRAM.match(started.last.program)
                hint = Hint(started.last.variables, f"python {program['file']} {cls}.{name}") if program else NO_HINT
                test = pytest_id(program["file"], f"{cls}.{name}") if program else f"{cls}::{name}"
        else:
            test = pytest_id(file_of_module(module), f"{cls}.{name}")
        if name in ("setUpClass", "tearDownClass"):  # no test is called that; it is what all those of the class need
            test = test.removesuffix("::" + name)
        failure = Failure(f"{cls}.{name}{match['sub']}", test, as_traceback(body) or body, hint=hint)
        yield ShownFailure(name, "UNITTEST", i, end), failure
        i = end


def _ends(line: str, *, bare: bool) -> bool:
    """Whether what is shown of a test ends above `line`; `bare`: as green shows it."""
    return line.startswith((*_GREEN, "Ran ")) if bare else line == _DOUBLE or bool(_SINGLE.match(line))
