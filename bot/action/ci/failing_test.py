"""A failing test, wherever it was read."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import Enum

from bot.action.ci.doctests import TEXTS, is_doctest, with_option

# Runners put a checkout into NAME/NAME below a directory `work` (hosted ones), `_work` (others) or `__w` (containers);
# a workflow that checks out into OWNER/NAME has that below.
_CHECKOUT = re.compile(r"^.*?/(?:_?work|__w)/([^/]+)/\1/(?:(?!tests?/|src/)[^/]+/\1/(?=[^/]+/))?")
_JENKINS = re.compile(r"^/(?:var/lib/jenkins/(?:workspace|pytorch)|vllm-workspace|transformers|diffusers|pytorch/[^/]+)/")
# Of an absolute path under a root that nothing is known of, the directory of the tests on.
_TESTS = re.compile(r"^(?:[A-Za-z]:)?/(?:[^/]+/){0,30}?(?=tests?/)")
# Buck runs a test where all that it imports is below one directory.
_LINK_TREE = re.compile(r"^(?:[^#\n]*/)?[^/#\n]{1,200}#link-tree/")
# Bazel the same, with a directory for each repository.
_RUNFILES = re.compile(r"^(?:[^\n]*/)?[^/\n]{1,200}\.runfiles/[^/\n]{1,200}/")
_ABOVE = re.compile(r"^(?:\.\.?/)+")

MAX_ID = 1_000
NOTEBOOK = ".ipynb"
# What tests are in.
FILES = (".py", NOTEBOOK, *TEXTS)

# Variables of a hint that reach the program: those by which a test suite says in which mode it runs. A log is hostile text, so what
# loads code, names files or changes the search path is not among them.
_VARIABLE = re.compile(
    r"(?P<name>PYTORCH_(?:TEST|OPINFO)\w*|(?:PYTORCH|PYTORCH_CUDA)_ALLOC_CONF|TORCHINDUCTOR_\w+|TORCHDYNAMO_\w+|TORCH_COMPILE\w*|TEST_\w+|RUN_\w+|VLLM_\w+"
    r"|CUDA_LAUNCH_BLOCKING|CUDA_VISIBLE_DEVICES|OMP_NUM_THREADS|ATEN_CPU_CAPABILITY|NGPU)=(?P<value>[\w.,:+=-]{0,200})",
    re.ASCII,
)


class Seen(str, Enum):
    """How a log tells of a failure."""

    ERROR = "error"  # with what was raised
    DEATH = "death"  # a signal
    TIMEOUT = "timeout"
    NUMBERS = "numbers"  # a benchmark that compares with eager found other numbers
    COUNT = "count"  # a benchmark counted otherwise than expected
    LOGGED = "logged"  # by torch, before it raised an error
    NAMED = "named"  # the name alone
    FILE = "file"  # a test file that failed as a whole, nothing more


@dataclass(frozen=True)
class Hint:
    """The command that a log names for one test: `variables` as NAME=VALUE, `program` what they stand before."""

    variables: tuple[str, ...] = ()
    program: str = ""


NO_HINT = Hint()


@dataclass(frozen=True)
class Failure:
    """One failing test.

    `test` is what pytest calls it (`tests/test_x.py::TestY::test_z[param]`), the file alone where all of it failed, without it where
    the log does not say it, a model's name for a benchmark, empty where the log names none; `name` is for people. `text` ends in a
    traceback as Python prints it, or holds faulthandler's dump where `signal` is set. `note` is what the log says instead of an error.
    `source` is the test's own, as far as it is shown. `script` is the path of the program that failed, if that is no test. `root` is what
    pytest calls its root, if the log says so: the test's path counts from there, or from below; `located`: it is one of the checkout.
    """

    name: str
    test: str
    text: str
    signal: str | None = None
    job: str = ""
    seen: Seen = Seen.ERROR
    note: str = ""
    hint: Hint = NO_HINT
    source: str = ""
    script: str = ""
    root: str = ""
    located: bool = False

    @property
    def file(self) -> str:
        """The file that the test's id begins with; empty where there is none."""
        file = self.test.partition("::")[0]
        return file if file.endswith(FILES) else ""

    @property
    def gone(self) -> bool:
        """Whether a process died, nobody knows of what."""
        return self.seen is Seen.DEATH and self.signal is None

    @property
    def _named(self) -> bool:
        """Whether a command can name the test: its id is one line, no option, and no file of options, as pytest reads those behind an @.

        A notebook's cell runs in another program, below those above it.
        """
        named = bool(self.file) and not self.file.endswith(NOTEBOOK) and not self.test.startswith(("-", "@"))
        return named and self.test.isprintable() and len(self.test) <= MAX_ID

    @property
    def runnable(self) -> bool:
        """Whether a command can name the test, or the log has a command."""
        return self._named or (bool(self.hint.program) and self.hint.program.isprintable())

    def command(self, by_id: str, *, prefer_hint: bool) -> str:
        """What runs the test: `by_id`, which names it by its id, with the option that a doctest needs; the log's own command where
        `prefer_hint`, or where it has no id.

        The variables that the log names stand before it. Empty where neither is there.
        """
        if not self.runnable:
            return ""
        hinted = bool(self.hint.program) and self.hint.program.isprintable()
        file, _, name = self.test.partition("::")
        program = self.hint.program if hinted and (prefer_hint or not self._named) else with_option(by_id, file, name)
        return " ".join([*self.hint.variables, program])


def allowed_variables(words: str) -> tuple[str, ...]:
    """Those of the assignments in `words`, parted by blanks, that may reach a program."""
    return tuple(word for word in words.split() if _VARIABLE.fullmatch(word))


def repository_path(path: str) -> str:
    """A path in a log as the repository has it; as it is where that cannot be seen."""
    path = posixpath.normpath(path.replace("\\", "/"))
    if "#link-tree/" in path:
        return _LINK_TREE.sub("", path)
    if ".runfiles/" in path:
        return _RUNFILES.sub("", path)
    return _ABOVE.sub("", _TESTS.sub("", _JENKINS.sub("", _CHECKOUT.sub("", path))))


def file_of_module(module: str) -> str:
    """The path of `module`: `tests/test_x.py` for `tests.test_x`."""
    return module.replace(".", "/") + ".py"


def pytest_id(file: str, qualified: str) -> str:
    """What pytest calls a test in `file`, from its `qualified` name like `TestY.test_z[param]`; without the file where that is empty.

    Dots within brackets belong to the parameters, and all of them to the name of a doctest, or of a notebook.
    """
    if is_doctest(file, qualified) or file.endswith(NOTEBOOK):
        return f"{file}::{qualified}"
    head, bracket, parameters = qualified.partition("[")
    return "::".join([*filter(None, [file]), *head.split(".")]) + bracket + parameters
