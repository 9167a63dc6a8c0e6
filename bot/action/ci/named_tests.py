"""The tests that somebody's text names below a heading, as those that fail, or shows commands for; without what they raise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from bot.action.ci.asked import alone, asked
from bot.action.ci.failing_test import Failure, Seen, file_of_module, pytest_id, repository_path
from bot.action.ci.lines import title
from bot.action.ci.python_words import ERRORS, HEADER
from bot.action.ci.told_errors import COMPILING, TO_DO
from bot.action.ci.tracebacks import NAMED

# Lines below a heading that are looked at.
MAX_BELOW = 20

# What is about those that were mended, or left out, does not say that they fail now.
_NOW = r"(?!.{0,150}\b(?:fix|skipp?|(?:resolv|disabl|re-?enabl|remov)e?)(?:e?s|e?d|ing)?\b)"
# What a report says in its title holds for the commands that it shows, wherever.
_TITLE = re.compile(rf"^# (?i:{_NOW}).{{0,200}}(?:\b(?i:fail(?:s|ed|ing|ures?)?)\b|\b{NAMED}: \S)")
# One that has nothing but labels and a test's id.
_TITLED = re.compile(r"^# (?:\[[^\]\n]{1,60}\] {0,2}){0,4}(?P<id>[\w./-]{1,300}\.py::[^\s`]{1,500})$")
_HEADING = re.compile(
    rf"^{_NOW}"
    r"(?:(?:#{1,6} |\*\*)?.{0,40}\b(?:(?:failing|failed) tests?|following tests? (?:are )?fail(?:s|ed|ing)?)\b"
    r"|#{1,6} .{0,100}\btest failures?\b).{0,40}$",
    re.IGNORECASE,
)
# How a bot's list of jobs that failed links one, above what failed in it; and how the job is linked behind a test.
_JOB = " (gh)"
_IN_JOB = re.compile(r"(?:^|[\s`])(?P<id>[\w./-]{1,300}\.py::[^\s`]{1,500})`? GH job link\b")
# The test alone, or a command for it.
_TEST = re.compile(
    r"^(?:[-* ]{0,4}`?|(?P<command>(?:[>$] )?(?:[\w./ -]{1,200} && ){0,3}(?:[A-Z_]{1,40}=\S{0,100} {1,2}){0,5}(?:python3? -m )?pytest "
    r"(?:-\S{1,40} ){0,5}))"
    r"(?P<id>[\w./-]{1,300}\.py::[^\s`]{1,500})`?(?:,? and (?:\w{1,20} ){0,3}more\b.{0,40})?$"
)
# A sentence that says so of one test, which a line may end within.
_SAID = re.compile(
    r"(?:^|[.:!] )(?:[^`.:]{0,60} )?(?P<tick>`?)(?P<id>[\w./-]{1,300}\.py::[^\s`]{1,500})(?P=tick) "
    r"(?i:(?:(?:is|has|been|now|also|still|just|started|began|keeps|consistently|sometimes|always) ){0,4}fail(?:s|ed|ing)\b)"
)
_LABELED = re.compile(r"(?:[^`\n:]{0,40} )?(?i:failing|failed) (?:\w{1,20} )?test: [`'\"]?(?P<id>[\w./-]{1,300}\.py::[^\s`'\"]{1,500})")
_NOT_NOW = re.compile(r"\b(?:if|no longer|used to|would|should|before|without|until|fix|skip|fixe[sd]|skipped|disabled?)\b", re.IGNORECASE)
# The same of whatever a command runs; a change has a plan for its own.
_FAILS = re.compile(r"\b(?:fail(?:s|ed|ing|ures?)?|br(?:eaks?|oke|oken)|crash(?:es|ed|ing)?)\b", re.IGNORECASE)
_COMMAND = re.compile(r"[ >$]{0,4}(?:[A-Z_]{1,40}=\S{0,100} {1,2}){0,5}(?:python3? (?:-m )?)?(?:pytest |[\w./-]{1,300}\.py )", re.ASCII)
_PLAN = re.compile(r"(?:#{1,6} |\*\*)?test plan\b", re.IGNORECASE)
# A test in a table, or in a list of what a suite ran: its class with the module, and its name.
_ROW = re.compile(
    r"\|? ?(?:\w{1,20},)?(?P<module>(?:[\w-]{1,60}\.){1,12}test_\w{1,100})\.(?P<suite>[A-Z]\w{1,200})"
    r" ?[|,] ?(?P<test>test_\w{1,200}) ?\|?$",
    re.ASCII,
)
# What tells of an error, which whoever reads that judges by.
_ERROR = re.compile(rf"\b[A-Z]\w{{0,100}}{ERRORS}\b")

# The compiler's class, which may tell the one of what caused it.
_OF_COMPILER = re.compile(rf"\b(?P<name>{NAMED})\b(?:: [A-Z]\w{{0,100}}{ERRORS}\b){{0,3}}")
# How the reports of transformers' CI show what a test raised, on the line below its id.
_AT_LINE = re.compile(r"^\(line \d{1,7}\) {1,4}(?P<said>\S.{0,2000})$")
# What pytest writes while it runs the tests of a file, of which one failed.
_PROGRESS = re.compile(r"(?P<file>[^\s:]{1,500}\.py) [.sxX]{0,200}[FE][.sxXFE]{0,200}(?: {1,200}\[ {0,3}\d{1,3}%\])?$")


def progressed(lines: list[str]) -> Iterator[Failure]:
    """The test that the only command in such `lines` names, where pytest's progress shows that it failed, and nothing more."""
    shown = (_PROGRESS.match(line[:2_000]) for line in lines if ".py " in line)
    files = {repository_path(found["file"]) for found in shown if found}
    named = asked(lines) if len(files) == 1 else None
    if named and named.test.partition("::")[0] in files:
        yield Failure(named.name, named.test, "", seen=Seen.NAMED, hint=named.hint)


def commanded(lines: list[str]) -> Iterator[Failure]:
    """The test that the only command in such `lines` runs, where the title or the command's own line says that it fails."""
    named = alone(lines)
    # what it is compared with may pass
    several = sum(bool(_COMMAND.match(line)) for line in lines) > 1
    if named is None or several or any(map(_PLAN.match, lines)):
        return
    head = title(lines)
    said = [line[:2_000] for line in lines if named.name in line and ".py" in line]
    said = [line for line in said if _FAILS.search(line) and not _NOT_NOW.search(line)]
    said += [head] if _FAILS.search(head) and not (_NOT_NOW.search(head) or TO_DO.match(head)) else []
    if said:
        compiles = any(map(COMPILING.search, said))
        note = "the text tells that compiling fails" if compiles else ""
        yield Failure(named.name, named.test, "", seen=Seen.NAMED, hint=named.hint, note=note)


def listed(lines: list[str]) -> list[str]:
    """The ids of the tests in the tables and lists of such `lines`."""
    rows = [found for line in lines if (found := _ROW.match(line[:2_000]))]
    ids = [pytest_id(file_of_module(found["module"]), f"{found['suite']}.{found['test']}") for found in rows]
    return list(dict.fromkeys(ids or [found["id"] for line in lines if (found := _TEST.match(line[:2_000])) and not found["command"]]))


def failures(lines: list[str]) -> Iterator[Failure]:
    """Those tests in the `lines` of a text that tells of no error but the compiler's; of a report, those that raised that."""
    reported = list(_reported(lines))
    if reported:
        yield from reported
        return
    said = [line[:2_000] for line in lines]
    if any(_ERROR.search(_OF_COMPILER.sub("", line)) for line in said):
        return
    raised = next((found["name"] for line in said if (found := _OF_COMPILER.search(line))), "")
    yield from (_named(test, raised) for test in dict.fromkeys(_failing(said)))


def _failing(lines: list[str]) -> Iterator[str]:
    """The ids of the tests of which `lines` say that they fail."""
    head = title(lines)
    titled = bool(_TITLE.match(head))
    if named := _TITLED.match(head):
        # the text may have more of its path
        yield next((line for line in lines if line.endswith(f"/{named['id']}") and _TEST.match(line)), named["id"])
    at = MAX_BELOW
    job = False
    for line, below in pairwise([*lines, ""]):
        at = 0 if _HEADING.match(line) else at + 1 if not line.startswith("#") else MAX_BELOW
        if (found := _TEST.match(line)) and (0 < at < MAX_BELOW or (titled and found["command"]) or (job and not found["command"])):
            yield found["id"]
        if "GH job link" in line and (linked := _IN_JOB.search(line)):
            yield linked["id"]
        job = line.endswith(_JOB)
        sentence = f"{line} {below}" if line.endswith("`") and line.count("`") == 2 else line
        said = (_LABELED.match(sentence) or _SAID.search(sentence)) if ".py::" in sentence else None
        if said and not _NOT_NOW.search(sentence.replace(said["id"], "")):
            yield said["id"]


def _named(test: str, raised: str) -> Failure:
    """The failure of that `test`, in a text that tells of the class `raised`, or of none."""
    name = test.partition("::")[2].replace("::", ".")
    return Failure(name, test, "", seen=Seen.NAMED, note=raised and f"the text tells of {raised}")


def _reported(lines: list[str]) -> Iterator[Failure]:
    for line, below in pairwise(lines):
        raised = _AT_LINE.match(below)
        found = _TEST.match(line) if raised else None
        if raised and found and _OF_COMPILER.match(raised["said"]):
            test = found["id"]
            yield Failure(test.partition("::")[2].replace("::", "."), test, f"{HEADER}\n{raised['said']}")
