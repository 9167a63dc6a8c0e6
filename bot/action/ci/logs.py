"""The failing tests in the log of a job: of pytest, of unittest, and of PyTorch's own run_test.

Logs are hostile: nothing here runs on more than a bounded part of them, raises, or trusts that a line means what it says.
What comes out is run only as a test's id, in quotation marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.action.ci.failing_test import Failure, file_of_module, pytest_id, repository_path
from bot.action.ci.pytest_text import as_traceback

MAX_FAILURES = 2_000
MAX_SECTION = 400_000

_STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ?", re.MULTILINE)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TITLE = re.compile(r"^_+ (?!_ )(?P<title>\S.*?) _+$")
_BLOCK = re.compile(r"^=+ (?P<name>FAILURES|ERRORS) =+$")
_RULE = re.compile(r"^={2,} .{0,200} ={2,}$")
_CAPTURED = re.compile(r"^-+ (?:Captured |generated xml).*-+$")
_SUMMARY = re.compile(r"^(?:FAILED|ERROR) (?:\[\d+\.\d+s\] )?(?P<test>\S.*)$")
_STAGE = re.compile(r"^ERROR (?:at (?:setup|teardown) of|collecting) ")
_HINT = re.compile(r"^\s*(?:[A-Z_]+=\S+ )*python (?P<file>[\w./+-]+\.py) (?P<test>[\w.]+)\s*$")
_UNITTEST = re.compile(r"^(?:ERROR|FAIL): (?P<name>\w+) \((?P<where>[\w.]+)\)(?P<sub>.*)$")
_DOUBLE, _SINGLE = "=" * 70, "-" * 70
_FATAL = re.compile(r"(?:^|\s)Fatal Python error: (?P<what>[A-Za-z ]{1,60})$")
_FAULT_FRAME = re.compile(r'^  File "(?P<path>[^"]{1,500})", line \d+ in (?P<function>\w{1,200})$')
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}


def plain(log: str) -> str:
    """A log as the programs wrote it: without GitHub's time stamps, colours, carriage returns and NULs."""
    return _ANSI.sub("", _STAMP.sub("", log.replace("\r", "").replace("\0", "")))


def failures(log: str, job: str = "") -> tuple[Failure, ...]:
    """The failing tests that a job's log tells of, each once, in the log's order."""
    lines = plain(log).split("\n")
    found: dict[str, Failure] = {}
    for failure in (*_pytest(lines, job), *_unittest(lines, job), *_deaths(lines, job)):
        found.setdefault(failure.test or failure.name, failure)
        if len(found) >= MAX_FAILURES:
            break
    return tuple(found.values())


def _pytest(lines: list[str], job: str) -> Iterator[Failure]:
    summary = [match["test"] for line in lines if (match := _SUMMARY.match(line))]
    for title, section in _sections(lines):
        hint = next((match for line in section if (match := _HINT.match(line))), None)
        end = next((i for i, line in enumerate(section) if _CAPTURED.match(line) or line.startswith("To execute this test, run")), None)
        body = "\n".join(section[:end])[-MAX_SECTION:]
        name = _STAGE.sub("", title)
        if hint is not None:
            test = pytest_id(hint["file"], hint["test"])
        else:
            test = _named(name, summary, body)
        text = as_traceback(body)
        if text:
            yield Failure(name, test, text, job=job)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each failure that pytest shows."""
    inside, title = False, ""
    section: list[str] = []
    for line in lines:
        begins = _BLOCK.match(line)
        ends = begins or (inside and _RULE.match(line))
        titled = None if ends or not inside else _TITLE.match(line)
        if title and (ends or titled):
            yield title, section
        if ends:
            inside, title = bool(begins), ""
        elif titled:
            title, section = titled["title"], []
        elif title:
            section.append(line)
    if title:
        yield title, section


def _named(name: str, summary: list[str], body: str) -> str:
    """The id of the test with that title, from pytest's summary; of several, that whose file the section names."""
    ids: list[str] = []
    for line in summary:
        file, colons, rest = line.partition("::")
        if colons and file.endswith(".py"):
            # only the title says where an id with spaces in its parameters ends
            dotted = rest.replace("::", ".")
            if dotted == name or dotted.startswith(name + " - "):
                ids.append(pytest_id(file, name))
    return next(
        (test for test in ids if f"{test.partition('::')[0]}:" in body or test.partition("::")[0] + '"' in body), ids[0] if ids else ""
    )


def _unittest(lines: list[str], job: str) -> Iterator[Failure]:
    i = 0
    while i + 1 < len(lines):
        match = _UNITTEST.match(lines[i + 1]) if lines[i] == _DOUBLE else None
        i += 1
        if not match:
            continue
        start = next((j for j in range(i + 1, min(i + 40, len(lines))) if lines[j] == _SINGLE), None)
        if start is None:
            continue
        end = next((j for j in range(start + 1, len(lines)) if lines[j] in (_DOUBLE, _SINGLE)), len(lines))
        body = "\n".join(lines[start + 1 : end])[-MAX_SECTION:]
        where, name = match["where"], match["name"]
        # Python 3.11 and later name the method twice
        where = where.removesuffix("." + name)
        module, _, cls = where.rpartition(".")
        file = file_of_module(module) if module not in ("", "__main__") else _file_in(body, name)
        if module.startswith("unittest.") or not cls:  # a file that cannot be imported: `ERROR: test_x (unittest.loader._FailedTest...)`
            file = ""
        yield Failure(f"{cls}.{name}{match['sub']}", pytest_id(file, f"{cls}.{name}") if file else "", as_traceback(body) or body, job=job)
        i = end - 1


def _file_in(body: str, function: str) -> str:
    """The file of the frame of that function: a program that is run by its path calls itself `__main__`."""
    found = re.search(r'^  File "([^"\n]{1,500}\.py)", line \d+, in ' + re.escape(function) + "$", body, re.MULTILINE)
    return repository_path(found[1]) if found else ""


def _deaths(lines: list[str], job: str) -> Iterator[Failure]:
    """The tests in which Python died, from faulthandler's dump."""
    for i, line in enumerate(lines):
        fatal = _FATAL.search(line)
        if not fatal or fatal["what"] not in _SIGNALS:
            continue
        dump = lines[i : i + 2_000]
        end = next((j for j, text in enumerate(dump) if j > 1 and text.startswith(("##[", "Extension modules:"))), len(dump))
        frames = [match for text in dump[:end] if (match := _FAULT_FRAME.match(text))]
        frame = next(
            (match for match in frames if match["function"].startswith("test") and "test" in match["path"].rpartition("/")[2]), None
        )
        test = _last_id(lines[max(i - 3, 0) : i + 1], frame["function"]) if frame else ""
        if frame and not test:
            test = f"{repository_path(frame['path'])}::{frame['function']}"
        name = frame["function"] if frame else fatal["what"]
        yield Failure(name, test, "\n".join(dump[:end]), signal=_SIGNALS[fatal["what"]], job=job)


def _last_id(lines: list[str], function: str) -> str:
    """The id that pytest wrote before it ran the test (with `-v`): the dump knows of functions alone."""
    ids = [word for line in lines for word in line.split() if ".py::" in word and word.partition("[")[0].endswith("::" + function)]
    return ids[-1] if ids else ""
