"""The lines of a log as the programs wrote them, whatever stood before each: time stamps, ranks, actors, the logger of a server.

Ranks and actors print at the same time, so each line keeps the name of who printed it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.action.ci import attempts, told_stacks, writers
from bot.action.ci.pasted import Marks, dedented, restored, unflattened, unrecorded
from bot.action.ci.python_words import HEADER
from bot.action.ci.writers import BRANCH
from bot.failure.traceback import frame_place

# The last lines of a log, and the beginning of a line: the causes of a failure stand at the end, long lines are lists.
MAX_LINES = 500_000
MAX_LINE = 20_000
MAX_PREFIXES = 8

# Colors, links; Buildkite puts a time into an escape sequence of its own.
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|_[^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[()][AB0])")
# Control characters as terminals and `cat -v` spell them.
_SPELLED = re.compile(r"\^\[(?=\[[0-9;]{0,20}[A-Za-z])|\^M$", re.MULTILINE)
_PREFIX = re.compile(
    r"""
    \ufeff
    | _bk;t=\d{10,16}\x07?
    # `gh run view --log`: job, step, then the stamp
    | [^\t\n]{1,200}\t[^\t\n]{1,200}\t(?=\ufeff?\d{4}-\d\d-\d\dT)
    # Jenkins, with the branch of a pipeline
    | \[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\]\ \[(?!gw\d|rank\d|default\d)(?P<branch>[A-Za-z][\w\ .,:()/-]{0,80})\](?:\ |$)
    # GitHub, Azure, GitLab and Kubernetes (with the stream behind it), Buildkite and Jenkins (in brackets)
    | \[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)\]?(?:\ \d\d[OE](?:[ +]|$)|\ std(?:out|err)\ [FP](?:\ |$)|\ ?)
    # loggers, some with their ranks
    | \[\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\ ?(?:Z|UTC))?(?:\ (?:[A-Z]{1,3}\d{1,4}|\d{1,4})){0,4}\]\ ?
    # TeamCity, with the number of the step; AppVeyor, `rich`
    | \[\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\](?:[A-Za-z\ ]?:\t\ \[[^\]\n]{1,80}\]|:)?(?:\ |$)
    # nix: the derivation
    | [a-z][\w.+-]{1,60}>(?:\ |$)
    # Jenkins' Timestamper, `ts`, `docker build`, Google's Cloud Build
    | \d\d:\d\d:\d\d(?:\.\d{3})?(?:\ \ |$)
    | [A-Z][a-z][a-z]\ [\ \d]\d\ \d\d:\d\d:\d\d(?:\ |$)
    | \#\d{1,4}\ \d{1,6}\.\d{1,3}(?:\ |$)
    | Step\ \#\d{1,4}(?:\ -\ "[^"\n]{1,80}")?:(?:\ |$)
    # a log of several containers, as docker compose and viewers show it
    # whose names have no number
    | (?![a-z][\w.-]{0,60}[_-]\d{1,4}\ )
      (?:[\w.-]{1,60})?\ {0,20}\|\ (?=(?:ERROR|CRITICAL)\ \d|\((?:EngineCore|Worker|VllmWorker|APIServer)|\[rank\d|\[?\d{4}-\d\d-\d\dT)
    | (?P<who>
        # docker compose numbers its containers
        [a-z][\w.-]{0,60}[_-]\d{1,4}\ {1,40}\|(?=\ |$)
        | \[[\w.-]{1,40}\]\ (?=\[(?:rank|default)\d{1,5}\]:)
        | \[(?:rank|default|trainer)\d{1,5}\]:?
        | \[\d{1,4},\d{1,5}\]<std(?:out|err)>:
        | \((?:[A-Za-z_]\w{0,60}(?:\([\w(),\ .]{0,80}\))?(?:,?\ [\w=.]{1,40}){0,4},?\ )?pid=\d{1,10}(?:,\ ip=[\d.]{1,40})?\)
        # a server's logger: what it logs below an error was handled
        | (?P<torch>[EC]\d{4}\ \d\d:\d\d:\d\d\.\d{6}\ \d{1,20}\ [\w./\\-]{1,200}\.py:\d{1,6}\](?:\ \[[\d/_!]{1,40}\])?
          | (?:\[[\d/_]{1,40}\]\ )?torch\.[\w.]{1,80}:\ \[(?:ERROR|CRITICAL)\])
        | (?:ERROR|CRITICAL)\ \d\d-\d\d\ \d\d:\d\d:\d\d\ (?:\[[\w./-]{1,80}:\d{1,6}\]|[\w./-]{1,80}:\d{1,6}\])
      )(?P<blanks>\ {0,40})
    """,
    re.VERBOSE,
)
_STAMPED = re.compile(
    r"^[\[(_\ufeff\d]|^(?:ERROR|CRITICAL) \d|^[EC]\d{4} \d|^Step #|^[A-Z][a-z][a-z] [ \d]\d |^#\d"
    r"|^torch\.[\w.]{1,80}: \[|^[a-z][\w.+-]{1,60}>|^[^\t]{1,200}\t|^[\w.-]{0,70} {0,40}\|(?: |$)"
)
# What stands in the place of a branch of Jenkins', and is none: itself, and the levels of loggers.
_NO_BRANCH = frozenset({"Pipeline", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL"})
# Scripts that run in a container indent all that it prints: so much stands before what test runners and ranks write at the first column.
_INDENTED = re.compile(
    r"^(?P<blanks> {1,8})(?:={3,} (?:test session starts|short test summary info|FAILURES|ERRORS) ={3,}$|={70}$"
    r"|_{2,200} (?:\w{1,100}\.){0,3}[Tt]est\w{0,200}(?:\[[^\n]{0,500}\])? _{2,200}$"
    r"|platform \S{1,20} -- Python [\d.]{3,20}\S{0,9}, pytest-|(?:_ ){20,200}_$|[^\s:\"]{1,300}\.py:\d{1,7}: in [\w<]"
    r"|\[(?:rank|default|trainer)\d{1,5}\]:|\([A-Za-z_]\w{0,60} (?:[\w=.]{1,40} ){0,4}pid=\d{1,10}\)"
    r"|(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d "
    r"|(?:FAILED|ERROR) (?:\[\d{1,9}\.\d{1,9}s\] )?[^\s:]{1,500}\.py(?:::\S| - \S)"
    r"|The following tests failed consistently: \[|FAILED CONSISTENTLY: \S"
    r"|\++ (?:[A-Za-z_]\w{0,60}=\S{0,200} ){0,10}(?:python[\d.]{0,6}|pytest|torchrun|accelerate|conda|pip3?|bash|source|export|timeout) )"
)
# From the first of them alone: a bar of progress may be made of a million, with nothing behind them.
_ENDS = re.compile(r"(?<!\r)\r+\n")
_VARIABLE = re.compile(r"[A-Za-z_]\w{0,100} {1,100}= ?[rbfu]{0,2}['\"]")
_ESCAPED = re.compile(r"\\(.)")
# A shell's prompt, with an environment and the user or the directory before it; and what a mail or a comment puts before each line that
# it quotes.
_PROMPT = re.compile(
    r"^(?:\([\w. -]{1,60}\) ?){0,3}"
    r"(?:\[?[\w.-]{1,60}@[\w.-]{1,80}(?:[: ][\w~/.-]\S{0,200}?)?(?: ?\(\S{1,80}\))? ?\]?[$#%]"
    r"|[~/][\w/.-]{0,200}(?: ?\(\S{1,80}\))? ?[$%]|[%\u276f]) {1,3}(?=\S)"
)
_QUOTED = re.compile(r">(?: |$)")
MIN_QUOTED = 3
MIN_SPACED = 10
MAX_QUOTES = 2
_NO_ERROR = re.compile(r"\b[WIVD]\d{4} \d\d:")
_REPORTED = re.compile(r"""\{['"]message['"]: ['"](?P<error>.*)['"], ['"]\w{1,20}['"]: ['"]$""", re.DOTALL)
# What begins a record of a server's logger; a screen that was copied may have the next one behind the blanks that filled its line.
_RECORD = re.compile(r"^(?:\([\w =]{1,80}\) )?(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,80}:\d{1,6}\]")
# A frame's place that a terminal broke, and a whole one; and one that stands behind the source of the frame above, or below a heading.
_TORN_PLACE = re.compile(
    r'^(?P<mark>(?:[^"\n]{1,200}[\])>:|] ?)?) {0,8}File "'
    r'(?:[^"\n]{1,500}|[^"\n]{1,500}",?|[^"\n]{1,500}", (?:l|li|lin|line|line \d{0,9},?|line \d{1,9}, (?:in?)?)) ?$'
)
_PLACE = re.compile(r'^(?:[^"\n]{1,200}[\])>:|] ?)? {0,8}' + frame_place(r'[^"\n]{1,500}') + r", in [\w<]")
# A frame's path, which Windows parts otherwise.
_PATH = re.compile(frame_place(line=r"\d"))
# So many characters tell a line with a mark from the rest of a broken one.
_MARK = 6
_GLUED = re.compile(
    r"(?P<above> {4,40}(?!(?:ERROR|CRITICAL|\d{1,7}) )\S[^\n]{0,2000}?[\w)\]]|from user code:|input name: [^\n]{1,400} stack trace:)"
    r' {2,400}File "'
)
MAX_WRAPPED = 4
# What torch's own logger wrote: an error, which need not be the end of the process that wrote it.
LOGGED = "(logged)"
_PARTS = re.compile(r"[./\\ ]")
# A comment that is a line of a program.
_CODE = re.compile(r"# {1,40}(?:[\w.]{1,100} ?= ?\S|(?:python|torchrun|pytest)[\w.]{0,6} )")
# So many lines of a text may its title be in.
MAX_TITLE = 3


@dataclass(frozen=True)
class Lines:
    """The lines of a log: `text[i]` was printed by `who[i]`, which is empty where the line names nobody."""

    text: list[str]
    who: list[str]


def title(text: list[str]) -> str:
    """The line of `text` that is its title, in Markdown; a page has its name and labels above it. Empty where there is none."""
    return next((line for line in text[:MAX_TITLE] if line.startswith("# ") and not _CODE.match(line)), "")


def plain(log: str) -> str:
    """A `log` without colors, NULs, and the marks of who printed a line and when."""
    return "\n".join(read(log).text)


def read(log: str) -> Lines:
    """The last lines of a `log`, at most `MAX_LINES` of at most `MAX_LINE` characters, without what stands before them."""
    log = _restored(log)
    raw = log.replace("\0", "").rsplit("\n", MAX_LINES)[-MAX_LINES:]
    if len(raw) >= MIN_SPACED and not any(raw[1::2]):
        # whatever copied it has ended each line twice
        raw = raw[::2]
    for _ in range(MAX_QUOTES if "\n> " in log else 0):
        _unquote(raw)
    dedented(raw)
    if 'File "' in log:
        raw = _unwrapped(raw)
    if ".py" in log:
        raw = told_stacks.rewritten(raw)
    text: list[str] = []
    who: list[str] = []
    for line in raw:
        for record in _records(line[:MAX_LINE].rstrip()):
            bare, name = _bare(record)
            for part in _unescaped(bare) if bare.startswith("{") or _is_string(bare) else (bare,):
                text.append(part)
                who.append(name)
    if marks := Marks(text):
        marks.take(text, who)
        for i, line in enumerate(text):
            text[i], name = _bare(line)
            who[i] += name
    dedented(text)
    unflattened(text)
    _unbranch(who)
    _outdent(text, who)
    attempts.drop_earlier(text)
    writers.put_together(text, who)
    return Lines(text, who)


def _unbranch(who: list[str]) -> None:
    """Take the name of the only branch away from `who`: nobody else prints at the same time."""
    if len(branches := {name.partition(BRANCH)[0] for name in set(who) if BRANCH in name}) == 1:
        only = f"{branches.pop()}{BRANCH}"
        who[:] = [name.removeprefix(only) for name in who]


def _restored(log: str) -> str:
    """A `log` without colors, with the ends of lines, the characters and the separators of paths that others have."""
    if "^[[" in log or "^M\n" in log:
        log = _SPELLED.sub(lambda found: "" if found[0] == "^M" else "\x1b", log)
    if "\x1b" in log:
        log = _ANSI.sub("", log)
    if "\r" in log:
        log = _ENDS.sub("\n", log).replace("\r", "\n")
    log = restored(unrecorded(log))
    if "\\" in log and 'File "' in log:
        log = _PATH.sub(lambda found: found[0].replace("\\", "/"), log)
    if '\\n  File "' in (first := log[:MAX_LINE].partition("\n")[0]) and HEADER not in first:
        # what was copied begins within a string
        log = _written(log)
    return log


def _unwrapped(raw: list[str]) -> list[str]:
    """The lines of `raw`, with each place of a frame in one where a terminal had broken it, and with a line of its own."""
    lines: list[str] = []
    i = 0
    while i < len(raw):
        line = raw[i]
        i += 1
        if 'File "' not in line:
            lines.append(line)
            continue
        if joined := _GLUED.match(line[:MAX_LINE]):
            lines.append(joined["above"])
            line = f'  File "{line[joined.end() :]}'
        if torn := _TORN_PLACE.search(line[:MAX_LINE]):
            mark = torn["mark"][:_MARK]
            for end in range(i + 1, min(i + MAX_WRAPPED, len(raw)) + 1):
                if mark and raw[end - 1].startswith(mark):
                    break
                whole = "".join(raw[i - 1 : end]) if line is raw[i - 1] else line + "".join(raw[i:end])
                if _PLACE.search(whole[:MAX_LINE]):
                    line, i = whole, end
                    break
        lines.append(line)
    return lines


def _unquote(raw: list[str]) -> None:
    """Take away what quotes several lines one below the other; pytest begins single lines so."""
    start = 0
    while start < len(raw):
        end = start
        while end < len(raw) and raw[end].startswith(">") and _QUOTED.match(raw[end]):
            end += 1
        if end - start >= MIN_QUOTED:
            raw[start:end] = [line[2:] for line in raw[start:end]]
        start = max(end, start + 1)


def _records(line: str) -> list[str]:
    """The records of one logger on a `line`: one, unless the line is of a copied screen."""
    found = _RECORD.match(line) if line.startswith(("(", "ERROR", "CRITICAL")) else None
    if found is None or found[0] not in line[found.end() :]:
        return [line]
    return [found[0] + part for part in _unfolded([part.rstrip() for part in line.split(found[0])[1:]])]


def _unfolded(parts: list[str]) -> list[str]:
    """The lines of a traceback, with as many blanks as Python writes, where each has one instead; other `parts` as they are."""
    frames = [part.startswith(' File "') for part in parts]
    if not any(frames):
        return parts
    below = [False, *frames[:-1]]
    return [
        ("  " if frame else "    " if source or not part.strip(" ^~.") else "") + part
        for part, frame, source in zip(parts, frames, below, strict=True)
    ]


def _is_string(line: str) -> bool:
    """Whether a `line` holds a traceback in one string, or a part of one, that was printed: pytest shows a test's variables as well."""
    return "\\n  File " in line and not line.startswith(("E ", " ", ">")) and not _VARIABLE.match(line)


def _unescaped(record: str) -> list[str]:
    """The lines of a `record` of JSON, or of a dictionary that was printed, which holds a traceback: one where it holds none."""
    if f"{HEADER}\\n" not in record:
        return _written(record).split("\n") if "\\n  File " in record else [record]
    written = _written(record)
    above, _, below = written.partition(HEADER)
    if _NO_ERROR.search(above.rpartition("\n")[2]):
        return written.split("\n")
    if said := _REPORTED.search(above):
        # what a report of tests keeps beside it: the error, which the traceback's end repeats where that is not cut off
        error = said["error"].split("\n")
        rest = error if error[0] not in below else error[error.index("") :] if "" in error else []
        return [*f"{HEADER}{below}".rstrip("'}\"\n ").split("\n"), *rest]
    return [*above.removesuffix("\n").split("\n"), *f"{HEADER}{below}".split("\n")]


def _written(string: str) -> str:
    """What a `string` holds, as its source has it."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], string)


def _outdent(text: list[str], who: list[str]) -> None:
    """Take the blanks away that stand before all lines around one which a test runner writes at the first column.

    What stood behind a mark is not indented by what surrounds it. A branch prints what its script does.
    """
    done = 0
    for i, line in enumerate(text):
        by = who[i]
        indented = _INDENTED.match(line) if i >= done and line.startswith(" ") and (not by or by.endswith(BRANCH)) else None
        if indented is None:
            continue
        blanks = indented["blanks"]
        start = end = i
        while start > done and who[start - 1] == by and (not text[start - 1] or text[start - 1].startswith(blanks)):
            start -= 1
        while end < len(text) and who[end] == by and (not text[end] or text[end].startswith(blanks)):
            end += 1
        for j in range(start, end):
            text[j], name = _bare(text[j][len(blanks) :])
            who[j] += name
        done = end


def _logger(mark: str) -> str:
    """Which part of torch logged, by the `mark` of its logger: the name of its file."""
    path = mark.rpartition(": [")[0] or mark.partition(".py:")[0]
    name = _PARTS.split(path)[-1]
    # a rank of a test logs the error of which it dies
    return name if name == "common_distributed" else name + LOGGED


def _bare(line: str) -> tuple[str, str]:
    """A line without its prefixes, and who printed it."""
    name = ""
    for _ in range(MAX_PREFIXES):
        found = _PREFIX.match(line) if _STAMPED.match(line) else None
        if found is None:
            break
        blanks = ""
        if found["branch"] and found["branch"] not in _NO_BRANCH:
            name += f"{found['branch']}{BRANCH}"
        if found["who"] is not None:
            error = found["who"].startswith(("ERROR", "CRITICAL"))
            name += _logger(found["torch"]) if found["torch"] else "ERROR" if error else found["who"]
            # Some write a blank behind the mark, some do not; Python indents by two.
            blanks = found["blanks"]
            blanks = blanks[1:] if len(blanks) % 2 else blanks
        line = blanks + line[found.end() :]
    prompt = _PROMPT.match(line) if line.startswith(("% ", "\u276f ", "(", "~", "/")) or "@" in line[:150] else None
    return (f"$ {line[prompt.end() :]}" if prompt else line), name
