"""The commands by which a log says that programs were started, what the shell echoes and the lines of a step; their files in tracebacks."""

from __future__ import annotations

import ast
import re
import shlex
from itertools import pairwise

from bot.action.ci.failing_test import NO_HINT, Hint, allowed_variables
from bot.action.ci.python_words import HEADER
from bot.failure.traceback import frame_place

_ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]{0,100}=\S{0,300} "
_VALUE = r"""(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|(?!-\D)[^\s'"]\S{0,200}) """
# By these a command finds other files, or has another line of its own: what stands behind is not known then.
_MOVES = r"(?!(?:--(?:directory|cwd|chdir|chroot|split-string)|-[CDRS])[= ])"


def _options(*valued: str) -> str:
    """Options, which may hold their values; those of the forms `valued` have them behind. Each is read in one way only."""
    form = "|".join(valued) or "(?!)"
    return rf"(?:(?:{form}) {_VALUE}|(?!(?:{form}) ){_MOVES}-[^\s\"'=]{{1,60}}(?:={_VALUE}| )){{0,8}}"


# What stands before a program without changing what it does, or in how many processes.
_WRAPPERS = {
    "(?:uv|poetry|pdm|pixi|hatch|pipenv|rye) run": _options(
        "--(?:with|extra|group|python|package|environment|manifest-path|env-file)", "-[pe]"
    ),
    "(?:conda|mamba|micromamba) run": _options("--(?:name|prefix)", "-[np]"),
    "timeout": _options("-[ks]", "--(?:kill-after|signal)") + r"\d{1,9}(?:\.\d{1,9})?[smhd]? ",
    "taskset": _options() + r"[\da-fA-FxX][\da-fA-FxX,:-]{0,200} ",
    "numactl": _options("-[CNmip]", "--(?:physcpubind|cpunodebind|membind|interleave|preferred)"),
    "nice": _options("-n", "--adjustment"),
    "ionice": _options("-[cn]", "--(?:class|classdata)"),
    "chrt": _options() + r"\d{1,2} ",
    "stdbuf": _options("-[ioe]", "--(?:input|output|error)"),
    "time": _options("-[fo]", "--(?:format|output)"),
    "env": _options("-u", "--unset"),
    "sudo": _options("-[ug]", "--(?:user|group)"),
    "xvfb-run": _options("-[nefspw]", "--(?:server-num|error-file|auth-file|server-args|xauth-protocol|wait)"),
    "(?:exec|nohup|setsid|catchsegv|unbuffer|with-proxy)": "",
}
_AROUND = rf"(?:(?:/usr)?/bin/)?(?:{'|'.join(f'{name} {options}' for name, options in _WRAPPERS.items())})"
_BEFORE = rf"(?:{_ASSIGNMENT}|{_AROUND}){{0,40}}"
# How tox, nox, poe and hatch show a command, and a shell that is told to show its place, too.
_SHOWN_BY = re.compile(
    r"(?:\++ ?\(?[\w./-]{1,200}:\d{1,6}\)?:(?:\w{1,60}(?:\(\))?:?)?|nox >|Poe =>|cmd \[\d{1,3}\] \|"
    r"|[\w.-]{1,60}(?: run-test)?: commands\[\d{1,3}\](?:>| \|)) "
)
# So begin the lines of a log that may show one, but those of tox, which have this in them.
_MAY_SHOW = ("+", "$", "cd /", "Run ", "##[group]Run ", "nox >", "Poe =>", "cmd [")
_OF_TOX = ": commands["
_STARTED = re.compile(
    rf"^(?P<echo>\++ |\$ |##\[group\]Run |Run |(?P<elsewhere>cd /\S{{1,300}} && ))?"
    rf"(?P<before>{_BEFORE})"
    r"(?P<path>/\S{1,300}/)?(?P<program>(?:python[\d.]{0,6}|torchrun|accelerate launch) .{1,2000})$"
)
# One that stands alone on its line, and no words; a module without a dot may be a tool's.
_ALONE = re.compile(
    rf"{_BEFORE}(?:python[\d.]{{0,6}}|torchrun|accelerate launch) (?:-(?!m )\S{{1,60}} (?:\w{{1,30}} )?){{0,9}}"
    r"(?:-m (?!torch\.utils\.)(?:\w{1,60}\.){1,9}\w{1,60}|[\w./~-]{1,300}\.py)(?: |$)"
)
# What runs all tests of a file.
_TESTS = re.compile(
    rf"(?P<before>{_BEFORE})"
    r"(?P<program>(?:python[\d.]{0,6} -m )?pytest (?:-\S{1,60} ){0,9}(?P<path>[\w./~-]{1,300}\.py)(?: {1,3}-\S{1,60}){0,9}) {0,3}$"
)
_ITEM = re.compile(r"[-*] (?=`)")
# The same in ticks, as a line of a text's or behind the label that ends in a colon.
_TICKED = re.compile(r"(?:[^`\n]{0,80}: ?)?`(?P<command>[^`\n]{1,2000})`[.:]?$")
# The first file of such a command.
_SCRIPT = re.compile(r"(?:^| )(?P<path>[\w./~-]{1,300}\.py)(?: |$)")
# How a line ends on which a command does not.
_GOES_ON = " \\"
MAX_COMMAND = 2_000
_STEP = ("##[group]Run ", "##[endgroup]", "shell: ")
# What changes the shell alone, or only looks.
_QUIET = re.compile(
    r"(?:\++ |\$ )?(?:#|'?\[|(?:[A-Za-z_]\w{0,100}=\S{0,300}(?: |$)){1,40}$"
    r"|(?:cd|export|set|source|\.|echo|printf|true|mkdir|ls|pwd|which|unset|ulimit|nvidia-smi)(?: |$))"
)
# A file that ran as a program; what Inductor wrote is imported.
_PATH, _LINE = r'(?P<path>[^"\n]{1,500}\.py)', r"\d{1,7}"
_NOT_MADE = r'(?![^"\n]{0,500}(?:(?<!test_)torchinductor_|[\\/]inductor_cache[\\/]))'
_RAN = f"  {frame_place(_NOT_MADE + _PATH, _LINE)}, in <module>$"
_SHOWN = re.compile(rf"^{_RAN}", re.MULTILINE)
# The same where nothing called it: the program itself.
_MAIN = re.compile(
    rf"^{re.escape(HEADER)}\n(?:  File \"<frozen [^\n]{{1,200}}\n(?:    [^\n]{{0,500}}\n)?){{0,4}}{_RAN}",
    re.MULTILINE,
)
# What torchelastic's decorator wraps, or torch's pool starts, as the first frame that a rank shows: the program's own.
_RECORDED = re.compile(
    rf"^{re.escape(HEADER)}\n"
    r'  File "[^\n"]{1,500}/torch/(?:distributed/elastic/multiprocessing/errors/__init__\.py", line \d{1,7}, in wrapper'
    r'|multiprocessing/spawn\.py", line \d{1,7}, in _wrap)\n'
    r"(?: {4}[^\n]{0,500}\n){0,2}"
    rf"  {frame_place(_PATH, _LINE)}, in \w{{1,200}}$",
    re.MULTILINE,
)
# Python's and torch's own, which start others.
_STARTS = re.compile(r"(?:^|/)(?:lib/python[\d.]{1,6}/(?!(?:site|dist)-packages/)|(?:site|dist)-packages/torch/)")
# What Python raises where a program that it started has failed, with the words of the command, or its line.
_RAISED = re.compile(
    r"^subprocess\.CalledProcessError: Command '(?P<command>\[.{1,2000}\]|.{1,2000})' (?:returned non-zero exit status \d|died with )"
)
_PYTHON = re.compile(r"(?:.*[/\\])?(python[\d.]{0,6})(?:\.exe)?", re.IGNORECASE | re.DOTALL)
# In single quotes nothing means anything to a shell.
_QUOTED = re.compile(r"'[^']*'|(\"[^\"]*\")")
_MEANING = frozenset("|&;<>$`(){}*?#")


class Started:
    """The commands on the lines seen so far, by the names of the files that they run.

    `last` is the one that was started last, and no other program after it; none where the log does not show that. Of the lines of a
    step it is that with the only program. In what is a text of somebody's (`is_text`), and no log, a command needs no echo.
    """

    def __init__(self, *, is_text: bool = False) -> None:
        self.last = NO_HINT
        self._is_text = is_text
        self._hints: dict[str, Hint] = {}
        self._ran: set[Hint] = set()
        self._scripts: set[str] = set()
        self._in_step = False
        self._step: set[Hint] = set()
        self._begun = ""
        # what is listed before any of it runs, by the names of the files
        self._listed: dict[str, Hint] = {}

    def see(self, line: str) -> None:
        """Take in the next `line` of a log."""
        if self._is_text:
            line = _unticked(line)
            if (tests := _TESTS.match(line)) and _is_plain(tests["program"]):
                self._ran.add(Hint(allowed_variables(tests["before"]), tests["program"]))
                self._scripts.add(tests["path"])
                return
        elif not (self._in_step or self._begun or line.startswith(_MAY_SHOW) or _OF_TOX in line[:100]):
            return
        line = _SHOWN_BY.sub("$ ", line, count=1) if _SHOWN_BY.match(line) else line
        if self._goes_on(line):
            return
        line, self._begun = self._begun + line.strip() if self._begun else line, ""
        if line.startswith(_STEP):
            self._in_step = line.startswith(_STEP[0])
            if not self._in_step:
                return
            self._step, self.last, self._listed = set(), NO_HINT, {}
            if line.endswith(_GOES_ON):
                # the lines of the step follow, that one first
                return
        # ninja and make show the commands that they ran so
        alone = self._is_text and bool(_ALONE.match(line))
        echoed = line.startswith(("+", "$", "cd /")) or alone
        if not (self._in_step or alone or not line or _QUIET.match(line)):
            self._listed = {}
        if not (self._in_step or echoed or line.startswith("Run ")):
            return
        hint = self._started(line, alone=alone)
        command = line.removeprefix(_STEP[0])
        if _QUIET.match(command):
            return
        if self._in_step:
            self._step.add(hint)
            self.last = hint if len(self._step) == 1 else NO_HINT
        elif echoed:
            self.last = hint

    def _started(self, line: str, *, alone: bool) -> Hint:
        """The command on a `line` of a step, or on one that is echoed or stands `alone`; none where it is not known what it runs."""
        found = _STARTED.match(line)
        if found is None:
            return NO_HINT
        script = _SCRIPT.search(found["program"])
        self._scripts.update([script["path"]] if script else [])
        moved = found["elsewhere"] and _is_relative(found["program"])
        if moved or not _is_plain(found["program"]):
            # an earlier one is not what runs the file now
            hint, files = NO_HINT, [script["path"].rpartition("/")[2]] if script else []
        else:
            hint, files = Hint(allowed_variables(found["before"]), found["program"]), _files(found["program"])
            self._ran.update([hint] if files else [])
        if self._in_step or alone:
            hint = self._alone_in_list(hint, files)
        self._hints.update((name, hint) for name in files)
        return hint

    def _alone_in_list(self, hint: Hint, files: list[str]) -> Hint:
        """The `hint`, unless another one in the same list runs one of the `files`: which of them failed is not known then."""
        for name in files:
            if self._listed.setdefault(name, hint) != hint:
                self._listed[name] = NO_HINT
        return hint if all(self._listed[name] == hint for name in files) else NO_HINT

    def _goes_on(self, line: str) -> bool:
        """Whether the command on `line`, or the one that began above it, goes on below; what there is of it is kept then."""
        begins = line.endswith(_GOES_ON) and not line.startswith(_STEP) and (self._begun or _STARTED.match(line))
        if begins and len(self._begun) < MAX_COMMAND:
            self._begun += line.removesuffix(_GOES_ON).strip() + " "
            return True
        return False

    @property
    def only(self) -> Hint:
        """The command that ran files, where the lines seen so far have one alone."""
        return next(iter(self._ran)) if len(self._ran) == 1 else NO_HINT

    @property
    def script(self) -> str:
        """The file that the commands ran, whatever else is in them; empty where they ran several."""
        return next(iter(self._scripts)) if len(self._scripts) == 1 else ""

    def find(self, path: str) -> Hint:
        """The last command that ran the file at `path`, by its name; that of a package by the name of its directory."""
        directory, _, name = path.replace("\\", "/").rpartition("/")
        return self._hints.get(directory.rpartition("/")[2] + ".py" if name == "__main__.py" else name, NO_HINT)


def _unticked(line: str) -> str:
    """The command that a `line` of a text has in ticks, as an item, or behind the prompt of a system's own user; others as they are."""
    line = _ITEM.sub("", line.lstrip(" "), count=1)
    ticked = _TICKED.match(line) if line.endswith(("`", "`.", "`:")) else None
    line = ticked["command"].strip() if ticked else line
    return line[2:] if line.startswith("# ") and _ALONE.match(line[2:]) else line


def ran_in(traceback: str) -> str:
    """The path of the file that a `traceback` shows as it ran; empty where it shows none."""
    found = _SHOWN.search(traceback)
    return found["path"] if found else ""


def begun_in(traceback: str) -> str:
    """The path of the program with which a `traceback` begins; empty where that is Python's or torch's, which start others."""
    found = _MAIN.search(traceback) or _RECORDED.search(traceback)
    return found["path"] if found and not _STARTS.search(found["path"]) else ""


def started_in(lines: list[str]) -> Started:
    """What was started in the `lines` of a text."""
    started = Started(is_text=True)
    for line in lines:
        started.see(line)
    return started


def failed_in(lines: list[str]) -> dict[str, Hint]:
    """The commands of which `lines` say that another program started them, and they failed, by the names of the files that they ran; none
    for a file that several ran."""
    hints: dict[str, Hint] = {}
    for line in lines:
        found = _RAISED.match(line) if line.startswith("subprocess.") else None
        program = _of_python(found["command"]) if found else ""
        hint = Hint((), program)
        for name in _files(program) if program else ():
            if hints.setdefault(name, hint) != hint:
                hints[name] = NO_HINT
    return hints


def _of_python(command: str) -> str:
    """A `command` of Python's, which is a list of words or a line, as a line of plain words; empty where it is another one."""
    try:
        words = ast.literal_eval(command) if command.startswith("[") else shlex.split(command) if _is_plain(command) else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    python = _PYTHON.fullmatch(words[0]) if words and all(isinstance(word, str) and word.isprintable() for word in words) else None
    return shlex.join([python[1], *words[1:]]) if python else ""


def _files(program: str) -> list[str]:
    """The names of the Python files that a command may run; a module is taken for one."""
    words = shlex.split(program)
    files = [word.rpartition("/")[2] for word in words if word.endswith(".py")]
    modules = [module.rpartition(".")[2] + ".py" for option, module in pairwise(words) if option == "-m"]
    return [*files, *modules]


def _is_relative(program: str) -> bool:
    """Whether a command names a file, or a module, that is found from its own directory alone."""
    words = program.split()
    return "-m" in words or any(word.endswith(".py") and not word.startswith("/") for word in words)


def _is_plain(command: str) -> bool:
    """Whether a command is one of plain words: nothing of a shell's is in it but in single quotes."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return "\\'" not in command and '\\"' not in command and not _MEANING.intersection(_QUOTED.sub(r"\1", command))
