"""The failures in the log of a job: of pytest, of unittest, of Buck, of PyTorch's own runners, of programs that are no tests.

Logs are hostile: nothing here runs on more than a bounded part of them, raises, or trusts that a line means what it says.
What comes out is run only as a test's id, in quotation marks. Reading takes time in proportion to the log.
"""

from __future__ import annotations

import bisect
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from bot.action.ci import benchmarks, buck_log, cut_off, deaths, lines, logged, named_tests, passed, told_errors, unittest_log, untitled
from bot.action.ci.asked import CommandedTest, alone, asked
from bot.action.ci.children import TESTED, FailedChildren, running
from bot.action.ci.compiles import CALL_FAILED, says_that_it_compiles
from bot.action.ci.cut_off import mentions_compiler
from bot.action.ci.disabled import switched_off
from bot.action.ci.failing_test import NO_HINT, Failure, Hint, Seen, file_of_module, repository_path
from bot.action.ci.judge import fault, in_compiler, is_compiled, is_wrong_in_test, quotes, sign, told_fault
from bot.action.ci.lines import LOGGED, Lines
from bot.action.ci.parts import Parts, without_excerpts
from bot.action.ci.programs import Started, begun_in, failed_in, ran_in, started_in
from bot.action.ci.pytest_log import PytestLog, ShownFailure, root_of, test_on_stack
from bot.action.ci.run_test import DIRECTORY, NOT_IMPORTED, RunTestLog, hinted
from bot.action.ci.tracebacks import MAX_TEXT, Printed, PrintedTraceback, is_elsewhere, is_whole
from bot.action.ci.writers import apart
from bot.models.failure import Signature

MAX_FAILURES = 2_000
# Tracebacks outside tests that are looked at; the last ones.
MAX_LOOSE = 200
# Characters at the end of one in which a call stands that failed.
MAX_CALL = 2_000

_FLAVOR = re.compile(r"(?:Integration test, flavor ?: (?P<flavor>.{1,200}?), command ?:|=== \[(?P<test>[\w .-]{1,200})\] command:)")
# torchelastic's table of the ranks that failed, below the name of what each of them ran.
_TABLE = re.compile(r"^(?P<program>[\w./-]{1,300}) FAILED$")
_IN_TABLE = "  traceback : "
_AT_ONCE = "tests ran at once, and nothing tells which of them printed this, and whether it failed"
_RUN_AGAIN = "To execute this test, run"
# How much is known: what was raised with its stack, then what ended it, then the name alone.
_WEIGHT = {Seen.ERROR: 3, Seen.DEATH: 2, Seen.TIMEOUT: 2, Seen.NUMBERS: 2, Seen.COUNT: 2, Seen.LOGGED: 1, Seen.NAMED: 0, Seen.FILE: 0}


def failures(log: str, job: str = "") -> tuple[Failure, ...]:
    """The failures that the log of `job` tells of, each once, in the log's order where it shows them and before those that it names."""
    read = lines.read(log)
    root = root_of(read.text)
    return tuple(replace(found, job=job, root=root) for found in _Log(read).failures())


class _Log:
    """A log, read once by each of those who know a form of it."""

    def __init__(self, read: Lines) -> None:
        self.lines = read
        self.printed = Printed(read)
        self.runner = RunTestLog(read.text)
        self.pytest = PytestLog(read.text)
        self.found: dict[str, Failure] = {}
        self.children = FailedChildren(read, self.printed, self.pytest)

    def failures(self) -> list[Failure]:
        """All of them."""
        # what failed in a test counts, not what its end made of that
        for section, shown in sorted(self.pytest.shown, key=lambda each: each[0].title.startswith("ERROR at teardown of ")):
            if not is_whole(shown.text) and (broken := self._fault_above):
                shown = replace(shown, text="", seen=Seen.FILE, note=f"not shown, and the failure above was the machine's fault: {broken}")
            cause = self.children.cause(section, shown, self.children.unnamed) if shown.text else self.children.told(shown)
            self._add(cause, again=not section.title.startswith("ERROR at "))
        for source in (
            self._of_unittest(),
            map(self._narrowed, (died for text in apart(self.lines.text, self.lines.who) for died in deaths.failures(text))),
            benchmarks.failures(self.lines.text, self.printed),
            map(self.children.told, buck_log.failures(self.lines.text, self.printed)),
            map(self.children.told, self.pytest.summarized()),
            self.runner.consistent.values(),
            self.runner.timed_out.values(),
            map(self.children.told, self.pytest.in_progress()),
        ):
            for each in source:
                self._add(each)
        for each in () if self.found else self._to_run_again():
            self._add(each)
        for test, rerun in self.pytest.rerun.items():
            key = self._key(replace(rerun, test=test))
            if key in self.found:
                self._add(rerun)
        passed = {self._located(test) for test in self.runner.passed} - {self._located(test) for test in self.runner.consistent}
        known = {failure.file for key, failure in self.found.items() if "::" in failure.test}
        files = known | {self._located(test).partition("::")[0] for test in passed if "::" not in test}
        for whole in self.runner.files(files, self.printed):
            self._add(whole)
        told = [failure for key, failure in self.found.items() if key not in passed and not _not_imported(failure)]
        told += () if self.found else list(self._untitled()) or list(self._loose()) or list(self._logged()) or self._named()
        return self._alone(told[0]) if len(told) == 1 and len(self.lines.text) <= MAX_TEXT else told

    def _alone(self, failure: Failure) -> list[Failure]:
        """The only `failure` of somebody's text, with what the words say of it: its file, where a command for it has that; what was raised,
        where that is cut off; all tests, where a list has them."""
        if failure.seen is Seen.NAMED and not failure.text and self._fault_told:
            return [replace(failure, seen=Seen.FILE, note=f"named alone, and the text tells of the machine's fault: {self._fault_told}")]
        named = alone(self.lines.text) if failure.test and ".py" not in failure.test else None
        if named and named.name == failure.test.rpartition("::")[2]:
            test = f"{named.test.partition('::')[0]}::{failure.test}"
            failure = replace(failure, test=test, hint=failure.hint if failure.hint.program else named.hint)
        if failure.text and not is_whole(failure.text):
            failure = cut_off.completed(failure, self.lines.text, self.printed.all)
        unnamed = failure.text and '  File "' not in failure.text and not (failure.test or failure.script or failure.hint.program)
        tests = named_tests.listed(self.lines.text) if unnamed else []
        return [replace(failure, name=test.partition("::")[2].replace("::", "."), test=test) for test in tests] or [failure]

    def _located(self, test: str) -> str:
        """An id as the repository's root has it: PyTorch's runner starts its files in a directory of their own."""
        test = self.runner.full(test)
        file = test.partition("::")[0]
        outside = not self.runner.is_used or not file.endswith(".py") or file.startswith((DIRECTORY, "/"))
        return test if outside else DIRECTORY + test

    def _key(self, failure: Failure) -> str:
        return self._located(failure.test) or failure.name

    def _add(self, failure: Failure, *, again: bool = False) -> None:
        """Add what is known of a test, if that is more than before. It may have run `again` in another environment."""
        key = self._key(failure)
        old = self.found.get(key)
        if old is None and len(self.found) >= MAX_FAILURES:
            return
        if old is None or _weight(old) < _weight(failure) or (again and _weight(old) == _weight(failure) and _tells_more(failure, old)):
            hint = self.runner.hint(key) or failure.hint
            located = replace(failure, test=self._located(failure.test), hint=hint)
            self.found[key] = located if old is None else replace(located, name=old.name)

    def _of_unittest(self) -> Iterator[Failure]:
        """What unittest shows. It does not tell what was printed while a test ran: where one test alone of a run says that its child
        failed, what was printed before is the child's."""
        ends = [i for i, line in enumerate(self.lines.text) if line.startswith("Ran ") and TESTED.match(line)]
        runs: dict[int, list[tuple[ShownFailure, Failure]]] = {}
        for section, shown in unittest_log.failures(self.lines.text):
            runs.setdefault(bisect.bisect(ends, section.start), []).append((section, shown))
        for at, found in runs.items():
            before = self.printed.between(ends[at - 1] if at else -1, found[0][0].start)
            alone = sum(is_elsewhere(shown.text) for _, shown in found) == 1
            for section, shown in found:
                yield self.children.cause(section, shown, before if alone else ())

    # excerpts, and programs that are no tests

    @cached_property
    def _tested(self) -> int:
        """The last line that says that tests passed: what was printed above ended nothing. unittest says below how many failed."""
        # with `-q` pytest writes no line around it
        text, digits = self.lines.text, "123456789"
        ends = (i for i, line in enumerate(text) if line.startswith(("=", "Ran ", "ok (", *digits)) and TESTED.match(line))
        return max((i for i in ends if not any(below.startswith("FAILED (") for below in text[i + 1 : i + 3])), default=-1)

    def _to_run_again(self) -> Iterator[Failure]:
        """The tests for which PyTorch's suite names a command, below the traceback with which each failed."""
        above = {block.end: block.text for block in self.printed.all}
        # a report may show the command before it, too
        only = next(iter(above.values())) if len(above) == 1 else ""
        for i, line in enumerate(self.lines.text):
            hint = next(filter(None, map(hinted, self.lines.text[i + 1 : i + 3])), None) if line.startswith(_RUN_AGAIN) else None
            if hint and i > self._tested:
                name = hint[0].partition("::")[2].replace("::", ".")
                text = above.get(i, only)
                yield Failure(name, hint[0], text, seen=Seen.ERROR if text else Seen.NAMED, hint=hint[1])

    @cached_property
    def _fault_above(self) -> str | None:
        """What was wrong with the machine, if that caused the failure within which an excerpt begins, above the first title."""
        above = untitled.shown_in(self.lines.text[: self.pytest.shown[0][0].start - 1])
        return fault(above) if above else None

    def _untitled(self) -> Iterator[Failure]:
        """What pytest shows of a failure of the compiler, in an excerpt that begins below the title."""
        # with pytest's rules around it, of what did not fail, it is no excerpt
        whole = any(line.startswith("=") and passed.NO_FAILURES.match(line) for line in self.lines.text)
        failure = None if whole else untitled.shown_in(self.lines.text)
        if failure and is_compiled(sign(failure), failure):
            yield failure

    def _logged(self) -> Iterator[Failure]:
        """What torch logged, or a C++ compiler said, in a log in which no tests passed."""
        return map(self._by_command, logged.failures(self.lines, self.printed)) if self._tested < 0 else iter(())

    def _by_command(self, told: Failure) -> Failure:
        """A failure that is `told` of without its test or program, with the test or the program that somebody's only command names."""
        if told.test or told.hint.program or len(self.lines.text) > MAX_TEXT or self._tested >= 0:
            return told
        if named := self._only_asked:
            return replace(told, name=named.name, test=named.test, hint=named.hint)
        return replace(told, hint=self._started.only, script=told.script or _path(self._started.script))

    @cached_property
    def _started(self) -> Started:
        return started_in(self.lines.text)

    def _named(self) -> list[Failure]:
        """The tests that a text without tracebacks says fail; else the error of which its words tell, as do those above one that is cut."""
        if len(self.lines.text) > MAX_TEXT or self._fault_told:
            return []
        # what torch logged may have ended nothing: what the words say of it counts
        if not all(block.who.endswith(LOGGED) for block in self.printed.all):
            # what only says that another process failed may quote that one's traceback, cut off
            shown = next(self._programs(list(self.printed.all)[-1:]))
            if any(block.who.endswith(LOGGED) or (is_whole(block.text) and not is_elsewhere(block.text)) for block in self.printed.all):
                compared = told_errors.compares(self.lines.text, [block.text for block in self.printed.all])
                return [replace(shown, seen=Seen.LOGGED, note=told_errors.COMPARES)] if compared else []
            return list(cut_off.told(shown, self.lines.text)) or list(named_tests.failures(self.lines.text))
        text = self.lines.text
        tests = named_tests.failures, named_tests.progressed, switched_off
        words = told_errors.sentences, told_errors.titled, told_errors.alone
        readers = (*tests, *words, named_tests.commanded, told_errors.unshown)
        told = next(filter(None, (list(reader(text)) for reader in readers)), [])
        return list(map(self._by_command, told))

    def _loose(self) -> Iterator[Failure]:
        """The failures of the compiler, or of what it made, that ended a process, in a log that names no failing test; each once,
        whatever ranks died of it."""
        last: dict[str, set[int]] = {}
        # whose last one is cut off: what it raised may be shown, or told, in a part above
        cut: set[str] = set()
        parts = Parts(self.lines.text)
        chosen: list[PrintedTraceback] = []
        blocks: Sequence[PrintedTraceback] = self.printed.between(self._tested, len(self.lines.text))[-MAX_LOOSE:]
        blocks = without_excerpts(blocks) if len(self.lines.text) <= MAX_TEXT else blocks
        harmless = passed.printed(self.lines.text, [block.start for block in blocks])
        for block in reversed([block for block in blocks if block.start not in harmless]):
            compiled = mentions_compiler(block.text)
            tested = test_on_stack(block.text)[1] or (self._asked(block) and not is_whole(block.text))
            part, ends = parts.of(block.start), last.setdefault(block.who, set())
            is_last = part not in ends and (not ends or (is_whole(block.text) and block.who not in cut))
            if (compiled or tested) and is_last and not block.who.endswith(LOGGED):
                chosen.append(block)
            # one within which the log ends does not tell that the process died of something else
            if not is_elsewhere(block.text) and (compiled or is_whole(block.text)):
                ends.add(part)
                cut.update(() if is_whole(block.text) else (block.who,))
        found: dict[str, tuple[Failure, Signature]] = {}
        quoted: Failure | None = None
        # the end of what only says that another process failed
        ended = [block for block in chosen if is_whole(block.text) or not is_elsewhere(block.text)]
        for failure in map(cut_off.caused, self._programs((ended or chosen)[::-1])):
            signature = sign(failure)
            if signature is None or signature.fingerprint in found:
                continue
            if not is_compiled(signature, failure) and not is_wrong_in_test(signature, failure):
                quoted = failure if quotes(signature, failure) or _starts(failure) else quoted
                continue
            if self._fault_told and (not signature.exception or CALL_FAILED in failure.text[-MAX_CALL:]):
                continue
            found[signature.fingerprint] = failure, signature
        told = list(found.values())
        for i, (failure, signature) in enumerate(told):
            if not parts.tell_again(signature, (later for _, later in told[i + 1 :])):
                yield failure
        if quoted and not found:
            yield quoted

    @cached_property
    def _fault_told(self) -> str:
        """Of what fault of the machine the process died, as the words around an excerpt say, and its traceback, cut off, does not."""
        faults = map(told_fault, self.lines.text if len(self.lines.text) <= MAX_TEXT else ())
        return next(filter(None, faults), "")

    def _narrowed(self, died: Failure) -> Failure:
        """A file in which a test `died`, with the test that the only command names, where that is of the file."""
        named = self._only_asked if died.test == died.file and died.file else None
        of_file = named is not None and f"/{named.test.partition('::')[0]}".endswith(f"/{died.file}")
        return replace(died, name=named.name, test=named.test, hint=named.hint) if named and of_file else died

    @cached_property
    def _only_asked(self) -> CommandedTest | None:
        return asked(self.lines.text)

    def _asked(self, block: PrintedTraceback) -> CommandedTest | None:
        """The test that the only command names, or the one right above `block`, where nothing has passed."""
        if self._tested >= 0:
            return None
        return self._only_asked or asked(self.lines.text[max(block.start - 1, 0) : block.start])

    @cached_property
    def _failed(self) -> dict[str, Hint]:
        return failed_in(self.lines.text)

    def _begun_by(self, started: Started, path: str) -> Hint:
        """The command that ran the program at `path`: one `started` above it, else one of which its parent says that it failed."""
        hint = started.find(path)
        return hint if hint.program else self._failed.get(path.replace("\\", "/").rpartition("/")[2], NO_HINT)

    def _programs(self, chosen: list[PrintedTraceback]) -> Iterator[Failure]:
        """What died in each of the tracebacks, by what the log says above of how it was started."""
        at, title, launched = 0, "", ""
        ran = ""
        short = len(self.lines.text) <= MAX_TEXT
        started = Started(is_text=short)
        for block in chosen:
            for line in self.lines.text[at : block.start]:
                ran = running(line) or ran
                if found := _FLAVOR.search(line[:500]) if "command" in line[:500] else None:
                    title = found["flavor"] or found["test"]
                if line.endswith(" FAILED") and (found := _TABLE.match(line)):
                    launched = _as_path(found["program"])
                started.see(line)
            at = block.start
            # the test may stand before the header
            ran = running(self.lines.text[at]) or ran
            at_once = self.children.at_once(at)
            named = CommandedTest(ran) if ran and not at_once else self._asked(block)
            on_stack = test_on_stack(block.text)
            if named and named.hint.program and on_stack[1] not in named.name:
                # `-k` chose others, too
                named = None
            shown = ran_in(block.text)
            path = shown or (launched if self.lines.text[at].startswith(_IN_TABLE) else "")
            name = path.rpartition("/")[2]
            hint = self._begun_by(started, path) if path else NO_HINT if named else started.last
            test = ""
            file, function = ("", "") if hint.program or title or named else on_stack
            if named and not hint.program and not title:
                test, hint = named.test, named.hint
            if function:
                # the class is on no frame
                test, hint = f"{file}::{function}", Hint((), f"pytest {shlex.quote(file)} -k {function}")
            script = "" if test or title else _path(begun_in(block.text))
            script = script or ("" if test or title or shown or not short else _path(started.script))
            if not (title or test or path or script or hint.program) and short and self._tested < 0:
                # somebody may name the command below what it raised
                hint, script = self._started.only, _path(self._started.script)
            failure = Failure(title or test.partition("::")[2] or name or "a program", test, block.text, hint=hint, script=script)
            yield replace(failure, seen=Seen.LOGGED, note=_AT_ONCE) if at_once else failure


def _starts(failure: Failure) -> bool:
    """Whether the `failure` is of a test that compiles, as the log says, by another process which it started."""
    return bool(failure.test) and is_elsewhere(failure.text) and says_that_it_compiles(failure)


def _path(script: str) -> str:
    return script and repository_path(script)


def _as_path(program: str) -> str:
    """The path of a `program` that is a file, or a module."""
    return program if program.endswith(".py") else file_of_module(program)


def _weight(failure: Failure) -> int:
    if failure.seen in (Seen.ERROR, Seen.NAMED) and failure.text:
        return 4 if '  File "' in failure.text else 1
    return _WEIGHT[failure.seen] if failure.text or failure.seen is not Seen.ERROR else 0


def _tells_more(failure: Failure, other: Failure) -> bool:
    """Whether the `failure` is the compiler's and the `other` of the same test is not: a log may have it in several environments."""
    ours, theirs = (in_compiler(sign(each), each) and fault(each) is None for each in (failure, other))
    return ours and not theirs


def _not_imported(failure: Failure) -> bool:
    """Whether a whole file failed since Python cannot read or import it: no test of it ran."""
    signature = sign(failure) if failure.test == failure.file and failure.text else None
    return signature is not None and bool(signature.exception) and signature.exception[-1] in NOT_IMPORTED
