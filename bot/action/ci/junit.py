"""The failing tests in JUnit XML, as artifacts of a run hold it: zip files with hostile content."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from bot.action.ci.archive import Late, members, never
from bot.action.ci.failing_test import Failure, Seen, file_of_module, pytest_id, repository_path
from bot.action.ci.lines import plain
from bot.action.ci.pytest_log import CASE, CRASHED, DIED, ERROR
from bot.action.ci.pytest_text import as_traceback, own_source
from bot.action.ci.python_words import HEADER

MAX_FAILURES = 2_000
# Characters.
MAX_NAME = 2_000
# What no XML may hold, but what a program printed does, colors above all: as it is, and as a reference.
_NO_CHARACTERS = bytes(number for number in range(32) if number not in b"\t\n\r")
_NO_REFERENCE = re.compile(r"&#(?:x0{0,6}(?:[0-8bcef]|1[0-9a-f])|0{0,6}(?:[0-8]|1[1245-9]|2\d|3[01]));", re.IGNORECASE)


# What pytest says where it could not collect the tests of a file.
_COLLECTED = "collection failure"


# What unittest-xml-reporting calls the failure of what a class of tests needs.
_OF_CLASS = re.compile(r"(?:setUp|tearDown)Class \((?P<where>[\w.]{1,500})\)")


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses a document type before any of it is read: no writer of JUnit XML needs entities, but an attacker does."""

    def doctype(self, *_: str | None) -> None:
        raise ValueError("a document type")


def in_archive(archive: bytes, job: str = "", late: Late = never) -> tuple[Failure, ...]:
    """The failures in all XML files of the zip file `archive`, which is named after `job`; of some of them where it is `late` by then.

    What is unreadable or too large is skipped.
    """
    found: list[Failure] = []
    for _, xml in members(archive, lambda name: name.lower().endswith(".xml"), late):
        found += failures(xml, job)
        if len(found) >= MAX_FAILURES:
            break
    return tuple(found[:MAX_FAILURES])


def failures(xml: bytes, job: str = "") -> tuple[Failure, ...]:
    """The failing test cases in `xml`, one JUnit XML file of `job`; none where it is no such file."""
    try:
        try:
            root = _root(xml)
        except ElementTree.ParseError:  # not all writers take out what their programs printed
            text = _NO_REFERENCE.sub("", xml.translate(None, _NO_CHARACTERS).decode("utf-8", errors="replace"))
            if text.encode() == xml:
                return ()
            root = _root(text)
    except (ElementTree.ParseError, ValueError, LookupError):
        return ()
    found: list[Failure] = []
    for case in root.iter("testcase"):
        wrong = next((child for child in case if child.tag in ("failure", "error")), None)
        if wrong is not None:
            found.append(_failure(case, wrong, job))
    return tuple(found)


def _root(xml: bytes | str) -> ElementTree.Element:
    return ElementTree.fromstring(xml, ElementTree.XMLParser(target=_NoDoctype()))


def _failure(case: ElementTree.Element, wrong: ElementTree.Element, job: str) -> Failure:
    text = plain(wrong.text or "")
    if not text.strip():
        # without a traceback the message is all that there is
        said = plain(wrong.get("message") or "")
        text = f"{HEADER}\n{said}" if ERROR.match(said) else said
    name, where = (case.get("name") or "")[:MAX_NAME], (case.get("classname") or "")[:MAX_NAME]
    module, classes = _split(where)
    if not where and wrong.get("message") == _COLLECTED:
        # the file's own error, as it was imported
        return Failure(file_of_module(name), repository_path(file_of_module(name)), as_traceback(text) or text, job=job)
    if group := _OF_CLASS.fullmatch(name):
        # no test is called that; it is what all those of the class need
        where, name = group["where"], ""
        module, classes = _split(where)
    name = CASE.sub("", name)
    place = case.get("file") or (file_of_module(module) if module else "")
    file = repository_path(place) if place else ""
    qualified = ".".join(filter(None, [*classes, name]))
    test = pytest_id(file, qualified) if file and qualified else ""
    if crashed := CRASHED.match(text.strip()):
        return Failure(qualified, test or crashed["id"], "", job=job, seen=Seen.DEATH, note=DIED)
    return Failure(qualified, test, as_traceback(text) or text, job=job, source=own_source(text))


def _split(where: str) -> tuple[str, list[str]]:
    """Module and classes of a `classname`: `tests.test_x.TestY` is a class in a module, as its capital says; so may a directory's be."""
    parts = where.split(".") if where else []
    first = max((i for i, part in enumerate(parts) if part.startswith("test_") or part.endswith("_test")), default=0)
    at = next((i for i, part in enumerate(parts) if i >= first and part.lstrip("_")[:1].isupper()), len(parts))
    return ".".join(parts[:at]), parts[at:]
