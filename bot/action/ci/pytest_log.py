"""The failing tests that pytest shows in a log: its sections, its summary, its progress."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from signal import Signals

from bot.action.ci import items, notebooks, passed
from bot.action.ci.asked import commanded
from bot.action.ci.failing_test import NOTEBOOK, Failure, Seen, file_of_module, pytest_id, repository_path
from bot.action.ci.pytest_text import MAX_SOURCE, as_traceback, own_source
from bot.action.ci.python_words import HEADER
from bot.action.ci.run_test import KILLED, hinted
from bot.action.ci.written_ids import id_at
from bot.failure.traceback import frame_place

MAX_SECTION = 400_000
MAX_LINES_SAID = 30
MAX_SAME_NAME = 50
MAX_BELOW = 20
MAX_MARKS = 20_000

_TITLE = re.compile(r"^_+ (?!_ )(?P<title>\S.*?) _+$")
_BLOCK = re.compile(r"^=+ (?P<name>FAILURES|ERRORS|RERUNS|FAILURES SHORT STACK) =+$")
_RULE = re.compile(r"^={2,} .{0,200} ={2,}$")
_CAPTURED = re.compile(r"^-+ (?:Captured |generated xml)")
# A mark for each test behind its file, and on the lines below where they are many.
_MARKS = re.compile(r"^(?:(?P<file>[^\s:]{1,500}\.py) )?(?P<marks>[.sxXFER]{1,300}) *(?P<percent>\[ *\d{1,3}%\])?$")
# An excerpt may begin below the block's own title.
_TEST = re.compile(r"(?:\w+\.)*[Tt]est\w*(?:\[.*\])?$")
_TEST_FILE = re.compile(r'^  File "((?:[^"\n]{1,500}/)?(?:test_\w{1,200}|\w{1,200}_test)\.py)", line ', re.MULTILINE)
_TEST_FRAME = re.compile(
    "^  "
    + frame_place(r'(?P<file>(?:[^"\n]{1,500}/)?(?:test_\w{1,200}|\w{1,200}_test)\.py)', r"\d{1,7}")
    + r", in (?P<name>test\w{0,200})$",
    re.MULTILINE,
)
# The same in a file of any name, where unittest is on the stack; not of what is installed, or torch's own.
_TEST_METHOD = re.compile("^  " + frame_place(r'(?P<file>[^"\n]{1,500}\.py)', r"\d{1,7}") + r", in (?P<name>test_\w{1,200})$", re.MULTILINE)
_RUNNER = '/unittest/case.py", line '
_INSTALLED = re.compile(r"(?:site|dist)-packages/|(?:^|/)torch/(?:testing|_\w+)/|/unittest/")
# The same without its first word, as people paste it, where there is no doubt.
_BARE = re.compile(r"[\w./-]{1,300}\.py::\S{1,500} - (?:torch\._(?:dynamo|inductor)\.|triton\.)")
# Words before it, in which case there has to be none either.
_WORDS_ABOVE = 300
_WORDS = re.compile(rf".{{1,{_WORDS_ABOVE}}}?[:\uff1a] ?(?=FAILED {_BARE.pattern})")
# pytest-subtests names the case behind the test.
CASE = re.compile(r" (?:\[[^\]]{0,300}\] ?)?\([^()]{0,500}\)$| \[[^\]]{0,300}\]$")
_SUMMARY = re.compile(
    r"^(?P<how>FAILED|ERROR|SUBFAIL(?:ED)?(?:\[[^\]]{0,300}\])?(?: ?\(.{0,500}?\))?) (?:\[\d{1,9}\.\d{1,9}s\] )?"
    r"(?P<file>[^\s:]\S{0,500}?\.(?:py|(?:rst|txt|md)(?=::))|[^\s:][^:\n]{0,500}\.ipynb(?=::))"
    r"(?:::(?P<rest>\S.*|(?<=ipynb::).*)| - (?P<said>\S.*))?$"
)
# `--tb=line` shows no more of a failure than this.
_PLACE = re.compile(
    r"^(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^\s:][^:]{0,500}\.py):(?P<line>\d{1,7}): (?P<said>[A-Za-z_][\w.]{0,200}(?:: .{0,2000})?)$"
)
# The class of an error whose line was cut there to the width of a terminal, from the package of it on; or where the log ends.
_CUT = re.compile(r"([a-z_]\w{0,60})(?:(?:\.\w{0,100}){0,9}?\.\.\.|(?:\.[a-z_]\w{0,100}){0,9}\.?)$")
# A test of unittest's, which may be written in another file than its class.
_SELF = re.compile(r"^self = <(?P<module>[\w.]{1,300})\.\w{1,200} testMethod=\w{1,300}>$", re.MULTILINE)
_STAGE = re.compile(r"^ERROR (?:at (?:setup|teardown) of|collecting) ")
ERROR = re.compile(r"^(?:[A-Za-z_][\w]*\.)*[A-Za-z_]\w*(?:: |$)")
_RUNNING = re.compile(
    # PyTorch's runner names the test that it lets run alone
    r"^(?:(?:stepcurrent: .{1,60}\. )?Running (?:only|1 items in this shard:) )?(?P<id>[^\s:`]{1,500}\.py::\S)"
)
_ROOT = re.compile(r"rootdir: (?P<root>/[^,\n]{1,500})(?:,|$)")
_TIMEOUT = re.compile(r"^(?:Failed: )?Timeout \(?>")
# Instead of an error, of a test that was expected to fail.
_PASSED = ("[XPASS", "Unexpected success")
_EXPECTED = "it passed, and was expected to fail"
DIED = "the process died while it ran the test"
CRASHED = re.compile(r"^(?:E +)?worker '[^']{1,20}' crashed while running (?P<quote>['\"])(?P<id>[^\n]{1,1000})(?P=quote)$")
# pytest-forked, instead of an error.
_SIGNALED = re.compile(r"^:-1: running the test CRASHED with signal (?P<number>\d{1,3})$")
# Where the compiler's classes of errors are, and characters by which the beginning of such a name is known.
_PACKAGES = (
    *("torch._dynamo.exc.", "torch._inductor.exc.", "torch._export.", "torch.export.", "torch.fx.experimental.symbolic_shapes."),
    *("triton.compiler.errors.", "triton.runtime.errors."),
)
MIN_NAME = 8
# The last lines of an error message in the summary.
_SUMMARY_ENDS = (
    *("FAILED", "ERROR ", "=", "!!!!!", "-", "Got exit", "##[", "+ ", "Traceback", "XFAIL ", "SKIPPED ", "PASSED ", "RERUN "),
    *("SUBFAIL", "To execute this", "```"),
)


@dataclass(frozen=True)
class ShownFailure:
    """What pytest shows of one failure: the lines from `start` to before `end`; `own` of them are not captured output."""

    title: str
    block: str
    start: int
    end: int


@dataclass(frozen=True)
class _Summary:
    """A line of pytest's summary, that with the index `at`, with the message that goes on below it."""

    at: int
    test: str
    said: str


def running(line: str) -> str:
    """The id with which `line` begins: pytest writes it before it runs the test (with `-v`). Empty where there is none."""
    found = _RUNNING.match(line) if ".py::" in line[:620] else None
    return id_at(line, found.start("id")) if found else ""


def progressed(line: str) -> str:
    """The id of the test that pytest, by its progress on `line`, saw fail; empty where it says nothing of the kind."""
    if " FAILED" not in line or ".py::" not in line:
        return ""
    if line.startswith("[gw"):  # pytest-xdist
        test = line.partition("] FAILED ")[2].strip()
    else:
        head, _, tail = line.rpartition(" FAILED")
        test = head.partition(" <- ")[0].rstrip() if not tail.strip() or tail.lstrip().startswith("[") else ""
    file, colons, name = test.partition("::")
    return test if colons and name and file.endswith(".py") and not any(c.isspace() for c in file) else ""


def _title(test: str) -> str:
    return test.partition("::")[2].replace("::", ".")


def _is_captured(line: str) -> bool:
    return line.startswith("-") and line.endswith("-") and bool(_CAPTURED.match(line))


def root_of(lines: list[str]) -> str:
    """The directory that pytest calls its root in `lines`; empty where it does not, or one run of it says another."""
    roots = {found["root"] for line in lines if line.startswith("rootdir: ") and (found := _ROOT.match(line))}
    return roots.pop() if len(roots) == 1 else ""


def sections(lines: list[str]) -> Iterator[ShownFailure]:
    """Each failure that pytest shows in `lines`."""
    block, title, start = "", "", 0
    failed = True
    for i, line in enumerate(lines):
        if not line.startswith(("=", "_")):
            continue
        begins, rule = _BLOCK.match(line), _RULE.match(line)
        ends = begins or (block and rule)
        failed = not passed.NO_FAILURES.match(line) if rule else failed
        titled = None if ends else _TITLE.match(line)
        if titled and failed and not block and _TEST.fullmatch(titled["title"]):
            block = "FAILURES"
        titled = titled if block else None
        if title and (ends or titled):
            yield ShownFailure(title, block, start, i)
        if ends:
            block, title = (begins["name"] if begins else ""), ""
        elif titled:
            title, start = titled["title"], i + 1
    if title:
        yield ShownFailure(title, block, start, len(lines))


def _kind(section: ShownFailure) -> tuple[str, str]:
    """The block of `section`, and the mark of its test in the progress."""
    return section.block, "R" if section.block == "RERUNS" else "E" if _STAGE.match(section.title) else "F"


def _died(name: str, test: str, number: int) -> Failure:
    try:
        signal = Signals(number).name
    except ValueError:
        signal = str(number)
    if signal in KILLED:
        return Failure(name, test, "", seen=Seen.FILE, note=f"ended from outside by {signal}")
    return Failure(name, test, "", signal=signal, seen=Seen.DEATH)


def _places(lines: list[str]) -> dict[str, str]:
    """By what was raised, the frames in which it was, where pytest shows each failure in one line; empty where there are several."""
    found: dict[str, str] = {}
    inside = False
    for line in lines:
        if line.startswith(("=", "_")):
            begins = _BLOCK.match(line)
            inside = begins is not None and begins["name"] == "FAILURES"
        elif inside and (place := _PLACE.match(line)):
            frame = f'  File "{place["path"]}", line {place["line"]}, in <unknown>\n'
            found[place["said"]] = frame if found.get(place["said"], frame) == frame else ""
    return found


def marked(lines: list[str]) -> dict[str, list[str]]:
    """The file of each test that failed (`F`), had an error around it (`E`) or ran again (`R`), in the order of the marks in `lines`."""
    found: dict[str, list[str]] = {"F": [], "E": [], "R": []}
    file = ""
    for line in lines:
        begins = ".py " in line[:510] and line[:1] not in " =-"
        if not begins and not (file and line[:1] in ".sxXFER" and line.endswith("]")):
            continue
        marks = _MARKS.match(line)
        if marks is None or not (marks["file"] or marks["percent"]):
            continue
        file = marks["file"] or file
        for each, files in found.items():
            if len(files) < MAX_MARKS:
                files += [file] * marks["marks"].count(each)
    return found


def _by_class(qualified: str, section: str) -> str:
    """The id of the test with a `qualified` name by the module of its class, where its `section` names that."""
    found = _SELF.search(section[:MAX_SOURCE])
    return pytest_id(file_of_module(found["module"]), qualified) if found and found["module"] != "__main__" else ""


def id_by_frame(qualified: str, text: str) -> str:
    """The id of the test with a `qualified` name by its own frame in the traceback `text`; empty where it has none."""
    function = qualified.partition("[")[0].rpartition(".")[2]
    frame = frame_place(r'([^"\n]{1,500}\.py)', r"\d+")
    found = re.search(f"^  {frame}, in " + re.escape(function) + "$", text, re.MULTILINE) if function.isidentifier() else None
    if found:
        return pytest_id(repository_path(found[1]), qualified)
    # torch's own parametrizing puts the parameters into the method's name, and leaves the function's as it was
    made = {found["file"] for found in _TEST_FRAME.finditer(text) if function.startswith(found["name"] + "_")}
    # where the function's own line is cut off, the only test file on the stack
    files = made or (set(_TEST_FILE.findall(text)) if function.startswith("test") else set())
    return pytest_id(repository_path(files.pop()), qualified) if len(files) == 1 else ""


def test_on_stack(text: str) -> tuple[str, str]:
    """The file and the name of the innermost function of the traceback `text` that is a test by both; empty where there is none."""
    found = deque(_TEST_FRAME.finditer(text), maxlen=1)
    if not found and _RUNNER in text:
        found = deque((each for each in _TEST_METHOD.finditer(text) if not _INSTALLED.search(each["file"])), maxlen=1)
    return next(((repository_path(each["file"]), each["name"]) for each in found), ("", ""))


class PytestLog:
    """What pytest tells in `lines`."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._summary = list(_summaries(lines))
        self.summary_at = self._summary[0].at if self._summary else len(lines)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._failed = [test for line in lines if (test := progressed(line))]
        for test in dict.fromkeys(
            [*(each.test for each in self._summary), *self._failed, *filter(None, map(running, lines)), *commanded(lines)]
        ):
            file, _, qualified = test.partition("::")
            notebook = file.endswith(NOTEBOOK)
            same = self._by_name[file.rpartition("/")[2] if notebook else qualified.replace("::", ".")]
            if len(same) < MAX_SAME_NAME:
                same.append(test if notebook else pytest_id(file, qualified.replace("::", ".")) if qualified else file)
        self.shown: list[tuple[ShownFailure, Failure]] = []
        self.rerun: dict[str, Failure] = {}
        failed = {_title(test) for test in (*(each.test for each in self._summary), *self._failed)}
        silent = {title for test in passed.summarized(lines) if (title := _title(test)) not in failed}
        shown = [section for section in sections(lines) if section.title not in silent]
        blocks = Counter(map(_kind, shown))
        marks = marked(lines) if shown else {}
        at: Counter[tuple[str, str]] = Counter()
        # an excerpt may end before it says whether what ran again failed once more
        untold = bool(shown) and shown[-1].block == "RERUNS" and shown[-1].end == len(lines) and not (self._failed or self._summary)
        for section in shown:
            kind = _kind(section)
            files = marks[kind[1]]
            # the file of the same place where all have one, or the only one
            file = files[at[kind]] if len(files) == blocks[kind] else files[0] if len(set(files)) == 1 else ""
            at[kind] += 1
            failure = self._shown(section, file)
            if section.block == "RERUNS" and not untold:
                self.rerun.setdefault(failure.test or failure.name, failure)
            else:
                self.shown.append((section, failure))

    def _parts(self, section: ShownFailure) -> tuple[str, list[str]]:
        """The text of `section` above what was captured, and the lines from there on."""
        lines = self._lines[section.start : section.end]
        end = next((i for i, line in enumerate(lines) if _is_captured(line) or line.startswith("To execute this test, run")), len(lines))
        return "\n".join(lines[:end])[-MAX_SECTION:], lines[end:]

    def _shown(self, section: ShownFailure, file: str = "") -> Failure:
        """The failure in `section`, within which the log may end; `file` is that of its test, if the progress says so."""
        body, below = self._parts(section)
        crashed = next((found for line in body.split("\n")[:20] if (found := CRASHED.match(line))), None)
        if crashed:
            return Failure(crashed["id"], crashed["id"], "", seen=Seen.DEATH, note=DIED)
        name = CASE.sub("", _STAGE.sub("", section.title))
        if item := items.shown(name, body, self._named, lambda file: self._by_name.get(file, ())):
            return item
        if signaled := _SIGNALED.match(body.strip()):
            return _died(name, self._named(name, body), int(signaled["number"]))
        text = notebooks.quoted(as_traceback(body)) or notebooks.drawn(body)
        collecting = section.title.startswith("ERROR collecting ") and name.endswith(".py")
        named = next((hint for line in below[:MAX_BELOW] if (hint := hinted(line))), None)
        if named and name.endswith(f".{named[0].rpartition('::')[2]}"):
            test = pytest_id(named[0].partition("::")[0], name)
        else:
            test = name if collecting else named[0] if named else self._named(name, body)
        test = test or _by_class(name, body) or id_by_frame(name, text) or pytest_id(file, name)
        if body.startswith(_PASSED):
            return Failure(name, test, "", seen=Seen.COUNT, note=_EXPECTED)
        last = text.rstrip().rpartition("\n")[2]
        seen = Seen.TIMEOUT if _TIMEOUT.match(last) else Seen.ERROR if text else Seen.NAMED
        return Failure(name, test, text, seen=seen, source=own_source(body))

    def _named(self, name: str, body: str) -> str:
        """The id of the test with that title, from pytest's summary; of several, that whose file the section names. One file's path may
        end like another's."""
        ids = self._by_name.get(name, [])
        named = [test for test in ids if re.search(rf"(?<![\w.-]){re.escape(test.partition('::')[0])}[:\"]", body)] if len(ids) > 1 else []
        return max(named, key=lambda test: len(test.partition("::")[0]), default=ids[0] if ids else "")

    def summarized(self) -> Iterator[Failure]:
        """The tests that the summary names, with as much of the error as it holds."""
        places = _places(self._lines)
        for each in self._summary:
            name = each.test.partition("::")[2].replace("::", ".") or each.test
            # a line that was cut to the width of a terminal may end within the error's class
            whole = bool(ERROR.match(each.said)) and not (each.said.endswith("...") and ":" not in each.said)
            if _of_compiler(each.said):
                yield Failure(name, each.test, "", seen=Seen.NAMED, note=f"its line is cut off in a name of the compiler's: {each.said}")
            elif (package := _CUT.match(each.said)) and not any(ours.startswith(package[1]) for ours in ("torch", "triton", "assert")):
                yield Failure(name, each.test, "", seen=Seen.COUNT, note=f"its error is one of {package[1]}'s")
            elif each.said.startswith(_PASSED):
                yield Failure(name, each.test, "", seen=Seen.COUNT, note=_EXPECTED)
            elif whole and package is None:
                timeout = Seen.TIMEOUT if _TIMEOUT.match(each.said) else Seen.ERROR
                frame = places.get(each.said.partition("\n")[0], "")
                yield Failure(name, each.test, f"{HEADER}\n{frame}{each.said}", seen=timeout)
            elif each.said:
                yield Failure(
                    name, each.test, f"{HEADER}\nAssertionError: {each.said}" if each.said.startswith("assert ") else "", seen=Seen.NAMED
                )
            else:
                yield Failure(name, each.test, "", seen=Seen.NAMED if "::" in each.test else Seen.FILE)

    def in_progress(self) -> Iterator[Failure]:
        """The tests whose failing pytest noted while it ran, for a log that ends before the summary."""
        for test in self._failed:
            yield Failure(test.partition("::")[2].replace("::", "."), test, "", seen=Seen.NAMED)


def _summaries(lines: list[str]) -> Iterator[_Summary]:
    for i, line in enumerate(lines):
        found = _SUMMARY.match(line) if line.startswith(("FAILED ", "ERROR ", "SUBFAIL")) else None
        found = found or (_SUMMARY.match(f"FAILED {line}") if _BARE.match(line) else None)
        if found is None and "FAILED " in line[:_WORDS_ABOVE] and (words := _WORDS.match(line)):
            found = _SUMMARY.match(line[words.end() :])
        if found is None:
            continue
        if found["rest"] is not None:
            # an error that begins with an empty line leaves the dash alone
            qualified, said = _split(found["rest"].removesuffix(" -"))
            test = f"{found['file']}::{qualified}"
        elif found["how"] != "FAILED" or found["said"]:
            test, said = found["file"], found["said"] or ""
        else:
            continue
        more: list[str] = []
        for below in lines[i + 1 : i + 1 + MAX_LINES_SAID] if said or line.endswith(" -") else ():
            if below.startswith(_SUMMARY_ENDS):
                break
            more.append(below)
        yield _Summary(i, test, "\n".join([said, *more]).strip())


def _of_compiler(said: str) -> bool:
    """Whether an error that is `said` ends within the name of one of the compiler's classes, so that nothing is known but that."""
    cut = said.removesuffix("...").removesuffix("\u2026")
    if cut == said and any(part[:1].isupper() for part in said.split(".")):
        return False
    named = len(cut) >= MIN_NAME and cut.replace(".", "").isidentifier()
    return named and any(cut.startswith(package) or package.startswith(cut) for package in _PACKAGES)


def _split(rest: str) -> tuple[str, str]:
    """The qualified name and the error in what stands behind the file: parameters may hold blanks and dashes."""
    dash, bracket = rest.find(" - "), rest.find("[")
    if bracket >= 0 and (dash < 0 or bracket < dash):
        end = rest.find("] - ", bracket)
        if end >= 0:
            return rest[: end + 1], rest[end + 4 :].strip()
        if rest.endswith("]") or dash < 0:
            return rest, ""
    name, _, said = rest.partition(" - ")
    return name, said.strip()
