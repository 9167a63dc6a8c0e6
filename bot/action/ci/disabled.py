"""Issues by which PyTorch's bots switch a test off: their title names the test, their text its file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from bot.action.ci.failing_test import NO_HINT, Failure, Hint, Seen, file_of_module, pytest_id
from bot.action.ci.lines import title as title_of
from bot.action.ci.run_test import DIRECTORY, hinted

MAX_BODY = 70_000

_TITLE = re.compile(r"(?:DISABLED|UNSTABLE|FLAKY)\s{1,5}(?P<name>\w{1,300})\s{1,5}\((?P<where>[\w.]{1,300})\)\s*")
_FILE = re.compile(r"^\s{0,10}(?:[*-] )?Test file path: ?`?(?P<file>[\w./-]{1,300}?)(?:\.py)?`?\s*$", re.MULTILINE)
# The page about a failing test, as people who switch one off by its button leave it: its id like `a/test_b.py::C::test_d`, or several.
_PAGE = re.compile(r"//(?:www\.)?torch-ci\.com/failure(?:\?failureCaptures=|/)([\w%.~+-]{1,2000})")
_ID = re.compile(r"(?P<file>[\w./-]{1,300}\.py)::(?P<test>[\w:]{1,600})")


def named_in(title: str, body: str) -> Failure | None:
    """The test that an issue with that `title` and `body` is about; None where the title is no such, or the file is not named."""
    found = _TITLE.fullmatch(title.strip())
    if found is None:
        return None
    name = found["name"]
    module, _, suite = found["where"].removesuffix("." + name).rpartition(".")
    hint, test = _hinted(body[:MAX_BODY], f"{suite}.{name}")
    if not test:
        if file := _told(body[:MAX_BODY], f"{suite}.{name}"):
            file = file if file.startswith(DIRECTORY) else DIRECTORY + file
        elif module not in ("", "__main__"):
            file = DIRECTORY + file_of_module(module)
        else:
            return None
        test = pytest_id(file, f"{suite}.{name}")
    return Failure(f"{suite}.{name}", test, "", seen=Seen.NAMED, hint=hint)


def switched_off(lines: list[str]) -> Iterator[Failure]:
    """The test that an issue switches off, whose title and text such `lines` are."""
    named = named_in(title_of(lines).removeprefix("# "), "\n".join(lines))
    if named:
        yield named


def is_one(title: str) -> bool:
    """Whether an issue with that `title` switches a test off."""
    return _TITLE.fullmatch(title.strip()) is not None


def _told(body: str, qualified: str) -> str:
    """The file of that test, as the text says it, or the address of its page does; empty where none is named."""
    if told := _FILE.search(body):
        return told["file"] + ".py"
    ids = (found for page in _PAGE.finditer(body) for found in _ID.finditer(unquote(page[1])))
    return next((found["file"] for found in ids if found["test"].replace("::", ".") == qualified), "")


def _hinted(body: str, qualified: str) -> tuple[Hint, str]:
    """The command for that test in the text, as a failing test prints it, and the test's id."""
    for line in body.split("\n"):
        found = hinted(line.rstrip("\r"))
        if found and found[0].partition("::")[2].replace("::", ".") == qualified:
            return found[1], found[0]
    return NO_HINT, ""
