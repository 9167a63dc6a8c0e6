"""Tracebacks that stand alone in a log: of programs that are no tests, of server processes, of ranks."""

from __future__ import annotations

import bisect
import re
from collections import Counter, deque
from dataclasses import dataclass

from bot.action.ci.compiles import ADVICE, CHECKED, CLASSES, EXPLAINS, OVERWRITTEN, STRIDES, TRACED, TRACERS
from bot.action.ci.drawn_tracebacks import Drawn, begins, goes_on, header
from bot.action.ci.lines import Lines
from bot.action.ci.python_words import ERRORS, HEADER, JOINTS
from bot.action.ci.torn import ends_frames, untorn
from bot.failure.traceback import exceptions, frame_place

MAX_TRACEBACKS = 2_000
# Lines of one traceback with its message; of the message alone, those at its margin.
MAX_BLOCK = 2_000
MAX_SAID = 60

# What comes behind a traceback of the same process and is none of its message; of what torch logs, errors name another who printed them.
_ENDS = re.compile(
    r"##\[|\+ |Got exit code|=====|-----|FAILED |ERROR |FINISHED PRINTING|- generated xml|To execute this test, run"
    r"|\[?[WIVDEF]\d{3,4} \d\d:\d\d:\d\d\.\d"
)
# A logger's words stand before the first line, on the same one; so do those of torchelastic's table, which indents what follows.
_BEHIND = f": {HEADER}"
# What indents a traceback: a group of exceptions has a line at its side, a trace of the compiler's events has tabs.
_INDENT = " |\t"
# Classes that the compiler alone has; that of Triton says where in the kernel.
COMPILERS = rf"(?:{'|'.join(sorted(CLASSES))}|CompilationError(?=: at \d{{1,6}}:\d{{1,6}}:))"
# Those, and whatever its packages raise, with the module.
NAMED = rf"(?:torch\._(?:dynamo|inductor)\.exc\.[A-Z]\w{{1,60}}|(?:torch\.[\w.]{{1,100}}\.)?{COMPILERS})"
_FRAME = re.compile(r'^(?P<indent> {0,40})  File "')
_PLACE = frame_place(r'[^"\n]{1,500}', r"\d{1,7}")
_CUT_OFF = re.compile(rf"^(?P<indent> {{0,8}})  {_PLACE}, in \S")
# A notebook leaves the module out; a server's logger says that there was an error before it says which.
_TORN = re.compile(rf" ?{_PLACE}, in \S")
# What was copied begins within the path.
_TORN_PATH = re.compile(r' {0,8}(?:[\w.+~<>-]{0,100}[\\/]){1,30}[\w.-]{1,100}\.py", line \d{1,7}, in \S')
# Words of somebody's, marks of Markdown, and a label before what was raised.
_LABEL = r"(?:[\w ]{0,60}\b(?:[Ee](?:rror|xception)|[Cc]rash)(?: [Tt]ype| [Mm]essage)?[*_]{0,2}:[*_]{0,2} )?[*_`]{0,3}"
_RAISED = re.compile(
    # not what tells that it went on
    r"^(?![^\n]{0,2000}\b(?:falling|falls|fell) back\b)(?P<indent> {0,3})(?:(?P<words>(?:> |[-*\u2022] {1,3})?[*_`]{0,3}"
    rf"(?:[^\n]{{0,100}}\b(?:ERROR|CRITICAL)\b[^\n\"'`]{{0,80}}?[\]:|-] ?|!{{3}} [\w ]{{1,60}} !{{3}} )?{_LABEL})"
    r"(?:torch\.(?:_(?:dynamo|inductor)\.exc|_subclasses\.fake_tensor|fx\.experimental\.symbolic_shapes)|triton\.compiler\.errors)\.\w{1,60}"
    rf"|Unsupported|(?P<label>(?:> )?[*_`]{{0,3}}{_LABEL})(?:(?:torch\.[\w.]{{1,100}}\.)?{COMPILERS}"
    rf"|RuntimeError(?=: Error: {OVERWRITTEN})|Error(?=: {OVERWRITTEN})"
    rf"|(?:[a-z_]\w{{0,60}}\.){{0,6}}[A-Z]?\w{{0,60}}(?:Error|Exception)(?=: (?:{CHECKED}{TRACERS}|{STRIDES}|[^\n]{{0,500}}?{TRACED}))"
    # of a process that quotes another one
    r"|RuntimeError(?=: [^\n]{0,200}'(?:torch\._(?:dynamo|inductor)\.exc\.[A-Z]\w{1,60}: |backend='[^'\n]{1,100}' raised:"
    rf"|{TRACERS})))): \S"
    # nothing but the class, of those that have no other meaning
    rf"|^(?:torch\.[\w.]{{1,100}}\.)?(?:{'|'.join(sorted(CLASSES))})$"
)
# How its message begins, where the class is not said.
_MESSAGE = re.compile(r"(?P<words>[^\s#][^\n]{0,200}?(?<!Failed): )?backend='[^'\n]{1,300}' raised:$")
_WARNS = re.compile(r"\bwarn(?:ings?)?\b|Warning\b", re.IGNORECASE)
# The rest of a frame whose first line, or its indent, is cut off, and what people put in the place of what they left out.
_REST = re.compile(r' {4}| ?File "|(?:\.{3,}|\u2026)?$|-+> ?\d| {1,3}\d{3,6} ')
_LEFT_OUT = re.compile(
    # grep parts what it found so, and Buildkite the first line of what is copied
    r" {0,12}(?:[\[(<{*#] ?)?"
    r"(?:--|\.{2,}|\u2026|(?:\.{2,}|\u2026)? ?(?:\w{1,12} ){0,3}(?:snip\w*|omitted|truncated|skipped|hidden|left out|removed)\b.{0,40})"
    r"(?: ?[\])>}*])?(?: ?(?:\.{2,}|\u2026))?$",
    re.IGNORECASE,
)
# The class of an exception, or words before a colon.
_SAID = re.compile(rf"[A-Za-z_][\w.]{{0,200}}(?::|\()|[\w.]{{0,200}}{ERRORS}\b|.*:$")
# What was raised, in a line that nothing of the compiler's is in.
_ERROR = re.compile(rf"[A-Za-z_][\w.]{{0,200}}{ERRORS}: \S")
MAX_LEFT_OUT = 80
# Between what was copied and the words around it, in Markdown.
_FENCE = re.compile(r" {0,3}```[\w-]{0,30}$")
# Lines of words that may stand above an excerpt; what has no more lines than that is no log, but somebody's text with one in it.
MAX_WORDS = 10
MAX_TEXT = 150
# The compiler's own lines at the end of its messages.
_SAYS = re.compile(
    # a program has that setting, too, but no mark of who printed it; and a command has that variable
    rf"from user code:$| {{0,4}}args\[\d{{1,3}}\]: (?:TensorBox|StorageBox)\(|(?!torch\._dynamo\.config|TORCHDYNAMO_EXTENDED)(?:{ADVICE})"
    r"|You can suppress this exception and fall back to eager"
)
_SETTING = re.compile(r" {4}torch\._dynamo\.config\.suppress_errors = True$")
# Its messages, where what was copied begins below the name of the class.
_TELLS = re.compile(rf"(?:> )?(?:{TRACERS}|{OVERWRITTEN}|{STRIDES})")
_EXPLAINS = re.compile(EXPLAINS)
# Above a stack that is no traceback; not the words of somebody who tells of an error.
_ABOVE = re.compile(r"(?!.{0,400}\b(?:errors?|exceptions?|fails?|failed|failures?)\b(?!.{0,400}(?:stack|trace)))\S.*:$", re.IGNORECASE)
# What the compiler raises to catch it itself: where it does without a cache, or begins again.
_FLOW = re.compile(r"\n[\w.]{0,200}\.(?:Bypass\w{1,60}|\w{0,60}RestartAnalysis|SkipFrame|Observed\w{1,60})(?:: [^\n]{0,2000})?$")
# Above what was caught: by the interpreter; by Inductor, which then chooses another kernel (torch/_inductor/select_algorithm.py); by
# Dynamo, which leaves a function as it is (torch/_dynamo/convert_frame.py).
_CAUGHT = re.compile(
    r"Exception ignored (?:in|while)|.{1,4000}? for benchmark choice |.{0,400}?WON'T CONVERT .{1,1000} due to:$"
    # the compiler's own, of a plain logger, no error; what others warn of may be the last words of what died then
    r"|(?:WARNING|INFO|DEBUG):torch\._(?:dynamo|inductor|functorch)\.[\w.]{1,80}:(?:Failed|Unable|Can't|Cannot|Could not)\b"
)

# Below what was caught: there Inductor says so, too.
_LEFT = re.compile(r"Error: [^\n]*\n(?:Runtime error during autotuning:[^\n]*\n[^\n]*\n)?Ignoring this choice\b")


@dataclass(frozen=True)
class PrintedTraceback:
    """One printed traceback with what caused it: the lines from `start` to before `end` in the log, those of `who` alone."""

    start: int
    end: int
    who: str
    text: str


def is_left_out(line: str) -> bool:
    """Whether a `line` stands for lines that somebody left out."""
    return len(line) <= MAX_LEFT_OUT and bool(_LEFT_OUT.match(line))


class _Unfinished:
    """A traceback that is being read; all of its lines are `indented` by so many characters, None: by as many as the first one.

    One that is `drawn` is so up to its message; one that `is_strict` begins with a frame at once.
    """

    def __init__(self, start: int, indented: int | None = 0, drawn: Drawn | None = None, is_strict: bool = False) -> None:
        self.start, self.said, self.joined, self.indented = start, 0, False, indented
        self._is_strict = is_strict
        self.drawn = drawn
        self.lines = drawn.lines if drawn else [HEADER]
        # whether there are lines behind the last frame that are of none, or empty; None behind what was raised
        self._torn: bool | None = False
        # it is no traceback at all
        self._void = False

    def take(self, line: str) -> bool:
        """Whether the line belongs to it."""
        if self._torn is not None and not self.said and is_left_out(line):
            return True
        if self.drawn and self.drawn.state != "said":
            return self.drawn.take(line)
        if self.indented is None:
            self._indent(line)
        elif self.indented and len(self.lines) == 1 and (first := _FRAME.match(line)):
            # the header alone may have other blanks before it, where what stood there was taken away
            self.indented = min(self.indented, len(first["indent"]))
        if self._void or (self.indented and line[: self.indented].strip(_INDENT)):
            return False
        line = line[self.indented :]
        if self.said and line.endswith(_BEHIND):
            return False
        if line == HEADER and (self.joined or self.said == 0):
            self.said, self.joined, self._torn = 0, False, False
        elif self._torn and _CUT_OFF.match(line):
            self.said, self._torn = 0, False
        elif line == HEADER or len(self.lines) >= MAX_BLOCK or self.said > MAX_SAID or (self.said and _ENDS.match(line)):
            return False
        elif line in JOINTS:
            self._torn = None
            if self.drawn:
                self.drawn.join(line)
                self.said = 0
                return True
            self.joined = True
        elif not line.startswith(" "):
            # a message may quote a stack as deep as it is
            self.said += 1
            self._at_margin(line)
        self.lines.append(line)
        return True

    def _indent(self, line: str) -> None:
        """Take the indent from the first `line` below the header; words may end like one, and have others below."""
        first = _FRAME.match(line)
        self.indented = len(first["indent"]) if first else 0
        words = bool(line.strip(_INDENT)) and not line.startswith(" ") and not _SAID.match(line)
        self._void = first is None and (self._is_strict or words)

    def _at_margin(self, line: str) -> None:
        """Note where the frames end: with what was raised, or with a `line` that is of none of them, if no other one follows."""
        if self._torn is not None:
            self._torn = None if ends_frames(line) else True

    @property
    def whole(self) -> bool:
        """Whether it has what was raised; one that Python printed is taken without it, for the log may end there, and so is an excerpt."""
        return not (self._void or self._left) and (self.drawn is None or self.drawn.state in ("said", "joined") or self.drawn.is_excerpt)

    @property
    def ended(self) -> bool:
        """Whether there is anything in it, where the log or the excerpt ends."""
        return self.drawn.close() if self.drawn else not (self._left or (self._is_strict and self.indented is None))

    @property
    def _left(self) -> bool:
        """Whether the compiler went on without what it tried."""
        return bool(self.said) and bool(_LEFT.search("\n".join(self.lines[-2 * MAX_SAID :])))

    def block(self, end: int, who: str) -> PrintedTraceback:
        """What was read."""
        return PrintedTraceback(self.start, end, who, _handled("\n".join(untorn(self.lines)).rstrip()))


def _handled(text: str) -> str:
    """The traceback `text` without what a program raised at its end to repeat, in words of its own, the error that it was handling."""
    above, joint, below = text.rpartition(JOINTS[1])
    if joint and _FLOW.search(above.rstrip()) and not is_whole(below):
        # the compiler raises and catches it: where what came then is cut off, it tells nothing
        return below.lstrip()
    handled, raised = (exceptions(above), exceptions(below)) if joint else ((), ())
    if not handled or not raised or any(frame.in_torch for frame in raised[0].frames):
        return text
    said = next((line.strip() for line in handled[0].message.split("\n") if line.strip()), "")
    return above.rstrip() if said and said in raised[0].message else text


class _TracebackReader:
    """The tracebacks in those of so many `lines` that were seen so far."""

    def __init__(self, lines: int) -> None:
        self._most = MAX_WORDS if lines > MAX_TEXT else MAX_TEXT
        self.done: deque[PrintedTraceback] = deque(maxlen=MAX_TRACEBACKS)
        self._open: dict[str, _Unfinished] = {}
        self._before: dict[str, str] = {}
        self._last = ""
        # of each, how many lines there were above a first traceback; and whether there was one
        self._words: Counter[str] = Counter()
        self._read: set[str] = set()

    def see(self, i: int, line: str, who: str) -> None:
        """Take in the line `i`, printed by `who`."""
        reading = self._open.get(who)
        if reading is not None and not reading.take(line):
            if self._open.pop(who).whole:
                self.done.append(reading.block(i, who))
            reading = None
        if reading is None:
            self._excerpt(i, line, who)
            self._header(i, line, who)
        if line.strip():
            # two lines of one message, of which the first alone may have a logger's mark
            self._before[who] = f"{self._last} {line}" if line == "due to:" else line
            self._last = line

    def _header(self, i: int, line: str, who: str) -> None:
        """Begin where `line` is a traceback's header; what was caught is left out."""
        drawn = begins(line)
        if not drawn and line.endswith("last)") and (broken := header(self._before.get(who, ""), line)):
            line, drawn = broken, True
        if not drawn and not line.endswith(HEADER):
            return
        # the words above an excerpt end here
        self._words[who] = self._most
        above = line[: -len(HEADER)]
        if drawn:
            self._start(who, _Unfinished(i, drawn=Drawn(line)))
        elif not _CAUGHT.match(self._before.get(who, "")):
            if line.endswith(_BEHIND):
                self._start(who, _Unfinished(i, None))
            elif not above.strip(_INDENT):
                self._start(who, _Unfinished(i, len(above)))
            else:
                # a bar that shows how far the program is stands before it
                self._open[who] = _Unfinished(i, None, is_strict=True)

    def _start(self, who: str, traceback: _Unfinished) -> None:
        self._open[who] = traceback
        self._read.add(who)

    def _excerpt(self, i: int, line: str, who: str) -> None:
        """Begin with `line` where the log, or what was pasted of it, begins within a traceback or below its frames."""
        before = self._before.get(who, "")
        if line in JOINTS:
            # what stands above is the end of an exception: the next one may have no frames
            self._words[who] = 0
            return
        message = _MESSAGE.match(line) if line.endswith("' raised:") and not _RAISED.match(line) else None
        if message and not _WARNS.search(message["words"] or ""):
            line = f"BackendCompilerFailed: {line.removeprefix(message['words'] or '')}"
        begun = self._words[who] >= self._most
        if line.startswith(("` ", "`F", "`b")):
            # all of it in one tick
            line = line[1:]
        if not begun and _TORN.match(line):
            # what was copied begins behind the blanks of the first line
            line = "  " + line.lstrip()
        elif not begun and _TORN_PATH.match(line):
            line = f'  File "{line.lstrip()}'
        said = (
            _SAYS.match(line)
            or (who and _SETTING.match(line))
            or (not begun and _TELLS.match(line))
            or (not before and _EXPLAINS.match(line))
        )
        if who not in self._read and said:
            # within a message, or at its end
            self._start(who, _Unfinished(i))
            if _ERROR.match(before):
                # the class of the message that ends so
                self._open[who].take(before)
            self._open[who].take(line.removeprefix("> "))
            return
        cut = _CUT_OFF.match(line)
        if _ABOVE.match(before):
            cut = None
            if line.lstrip().startswith('File "'):
                self._words[who] = self._most
        if (begun and not _LEFT_OUT.match(before)) or not (cut or not _REST.match(line)):
            return
        cut = cut or _RAISED.match(line)
        drawn = Drawn(line) if goes_on(line) else None
        if cut or drawn:
            words = cut["words"] or cut["label"] or "" if cut and cut.re is _RAISED else ""
            self._start(who, _Unfinished(i, len(cut["indent"] or "") if cut else 0, drawn))
            marks = words[len(words.rstrip("*_`")) :]
            self._open[who].take(line.removeprefix(words).removesuffix(marks[::-1]))
        # the first line may have lost the blanks of a frame's source, and there may be words about what was copied
        if i:
            self._words[who] += self._most if cut or drawn else bool(line)

    def end(self, i: int) -> None:
        """The log ends before the line `i`, or an excerpt does, and another one may begin below."""
        self.done.extend(reading.block(i, who) for who, reading in self._open.items() if reading.ended)
        for seen in (self._open, self._before, self._words):
            seen.clear()


def tracebacks(log: Lines) -> tuple[PrintedTraceback, ...]:
    """The last tracebacks in `log`, in the order in which they begin. Those that Python printed and went on from are left out."""
    reader = _TracebackReader(len(log.text))
    for i, (line, who) in enumerate(zip(log.text, log.who, strict=True)):
        if "```" in line and _FENCE.match(line):
            reader.end(i)
        else:
            reader.see(i, line, who)
    reader.end(len(log.text))
    return tuple(sorted(reader.done, key=lambda block: block.start))


class Printed:
    """The tracebacks of a log, in its order: those between two lines are found without asking all of them."""

    def __init__(self, log: Lines) -> None:
        self.all = tracebacks(log)
        self._starts = [block.start for block in self.all]

    def between(self, start: int, end: int) -> tuple[PrintedTraceback, ...]:
        """Those that begin behind the line `start` and before the line `end`."""
        return self.all[bisect.bisect_right(self._starts, start) : bisect.bisect_left(self._starts, end)]


# What a process says whose child failed: the child's own error is the cause.
_ELSEWHERE = re.compile(
    r"Engine core initialization failed|Server (?:exited unexpectedly|failed to start)"
    r"|(?:See|check the) (?:root cause|stack trace) \(?above"
    r"|CalledProcessError: Command "
    r"|EngineCore encountered|EngineDead|Worker(?:Proc)? (?:initialization )?failed|ChildFailedError|ProcessExitedException"
    r"|ProcessRaisedException|returned non-zero|Integration test failed|process \d+ (?:terminated|exited|failed)"
    r"|exited with (?:code|error)|Broken pipe|ActorDiedError|RayTaskError|failed with (?:return ?code|exit)|non-?zero exit"
    r'|multiprocessing/resource_tracker\.py", line'
    r"|assert 50[0-4] == 20\d\b|<Response \[50\d|timed out after [\d.]{1,12} seconds"
    r"|failed when called with args|APIConnectionError|All connection attempts failed|(?:host='|//)(?:127\.0\.0\.1|localhost|0\.0\.0\.0)\b",
    re.IGNORECASE,
)  # fmt: skip


def is_elsewhere(text: str) -> bool:
    """Whether the end of the traceback `text` says that another process failed."""
    return bool(_ELSEWHERE.search(text[-2_000:]))


def is_whole(text: str) -> bool:
    """Whether the traceback `text` tells what was raised: the log does not end within it."""
    last = next(iter(exceptions(text)), None)
    return last is not None and bool(last.name)
