"""From an exception's message to the part of it that names the bug, which stays the same after renaming, reshaping and moving.

Numbers, addresses, paths, generated names and argument dumps change from candidate to candidate while the bug stays, so they are removed.
What says which bug it is (operator, class, wording, C++ diagnostic) stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile

MAX_MESSAGE = 500  # characters of a normalized message
MAX_WORDS = 200  # characters of a message as it is shown to people
_MAX_READ = 64_000  # characters of a message that are read, except for C++ diagnostics
_MAX_LINE = 4_000
_MOST_PASSES = 8
_MOST_COLONS = 3  # lines that are shown for the colon before each of them
_MOST_LISTED = 5  # lines of a list that are shown
_MOST_BRACKETED = 20  # lines that are shown for the bracket at the end of the first

_QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}

# Classes whose message is "Inner: message of the inner exception".
_WRAPPERS = """BackendCompilerFailed InductorError InternalTorchDynamoError LoweringException SubgraphLoweringException SubprocException
    TorchRuntimeError"""
WRAPPER_CLASSES = frozenset(_WRAPPERS.split())
CPP_ERRORS = frozenset({"CppCompileError", "CUDACompileError"})
_TRITON_ERRORS = frozenset({"CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"})

_BACKEND = re.compile(r"\s*backend=.{0,200}? raised:\n")
_INNER = re.compile(r"\s*(?:torch\.[\w.]+\.)?([A-Za-z_][\w.]*)(?::[ \n]?|(?=\n|$))")
_GOT = re.compile(r"\bgot (?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\((.*)\)[ \t]*$", re.MULTILINE)

# gcc: "file:line:col: error: text"; clang the same; ld: "undefined reference to ..."
_CPP_DIAGNOSTIC = re.compile(r"^[^\n:]{1,4000}(?::\d+)*: (?:fatal |internal compiler )?error: ?([^\n]*)", re.MULTILINE)
_LINKER = re.compile(r"^[^\n]*?(undefined reference to [^\n]*|cannot find -l[^\n]*|(?:multiple|duplicate) definition[^\n]*)", re.MULTILINE)
_LINKER_FAILED = re.compile(r"ld returned|linker command failed")
_CPP_OUTPUT = re.compile(r"^Output:\n\s*([^\n]+)", re.MULTILINE)

# From such a line on, a message only repeats the program or gives advice.
# fmt: off
_TAIL = re.compile(r"^[ \t]{0,40}(?:" + "|".join((
    "from user code:", "Set TORCHDYNAMO_VERBOSE", "Set TORCH_LOGS", "You can suppress this exception", "While executing (?:%|return )",
    "Original traceback:", "Use tlparse", "Developer debug context:", "For more details about", "Found from", "User Stack",
    "Caused by:", "consider using data-dependent", r"For C\+\+ stack trace", "For more information", "For extended logs",
    "If you suspect", "The error above occurred when", "Exception raised from", r"C\+\+ CapturedTraceback",
    "Potential framework code culprit", "The following call raised", "CUDA kernel errors might be", "For debugging consider",
    "Compile with `TORCH_USE_CUDA_DSA`", r"args\[\d+\]:", "kwargs:", "Hint:", r"\(Size-like symbols", "To fix the error",
    "Suggested fixes", r"Traceback \(most recent call last\)", "=+ TorchDynamo Stack Trace", r"\[compiler-out\]",
)) + ")", re.MULTILINE)
# fmt: on
_EXPLANATION = re.compile(r"^[ \t]{0,40}Explanation: *([^\n]+)", re.MULTILINE)
_TARGET = re.compile(r"^[ \t]{0,40}target: *([^\n]{1,300})", re.MULTILINE)
# The guards that rejected compiled code, newest first; the line of the program that a guard is for follows "#".
_GUARD = re.compile(r"\bguard failure\(s\):\n[ \t]*- (?:\d+/\d+: )?([^\n]{1,2000})")
_GUARDED = re.compile(r"^tensor '.*?' (?=[a-z])")

_DUMPED = re.compile(
    r"\b(FakeTensor|FunctionalTensor|TensorBox|StorageBox|ComputedBuffer|InputBuffer|ConstantBuffer|ReinterpretView|FixedLayout|FlexibleLayout"
    r"|View|Pointwise|Reduction|Parameter|Proxy|TensorVariable|SymInt|OrderedSet|tensor|TensorMetadata|MetaTensor)\("
)
# What may stand between a word such as "status" and the number that identifies an error.
_LINKS = (" ", "=", ": ", " -", "=-", ": -")
_NAMES_NO_ERROR = "".join(rf"(?<!\b{word}{link})" for word in ("status", "code", "errno", "Errno") for link in _LINKS)
# Python prints a set in the order of its hashes, which differs from process to process.
_SET = re.compile(r"\{([^{}]*)\}")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_GOES_ON = (":", ")!")  # "Something failed:" alone names no bug
_PARENTHESIS = re.compile(r"[()]")
_OPENS, _CLOSES = "([{", ")]}"
_LISTED = re.compile(r"\s*(?:[-*\u2022]\s+)?")  # before what a list has in each of its lines
_IMPORTED = re.compile(r"\s*Failed to import [^\n]*\n\s*(\w+): ([^\n]*)")


@dataclass(frozen=True)
class MessageRule:
    """Replaces what changes from candidate to candidate. Applied on its own, it turns `example` into `becomes`."""

    name: str
    pattern: re.Pattern[str]
    replacement: str
    example: str
    becomes: str

    def apply(self, text: str) -> str:
        """`text` with all that matches replaced."""
        return self.pattern.sub(self.replacement, text)


def _rule(name: str, pattern: str, replacement: str, example: str, becomes: str) -> MessageRule:
    return MessageRule(name, re.compile(pattern, re.MULTILINE), replacement, example, becomes)


# Applied to each line of a message, in this order.
# fmt: off
NORMALIZATION = (
    _rule("state of the memory", r"\b(Tried to allocate) [\d.]+ (?:bytes|[KMGT]iB)\..*$", r"\1 N",
        "CUDA out of memory. Tried to allocate 5.86 GiB. GPU 0 has 9 GiB", "CUDA out of memory. Tried to allocate N"),
    _rule("where the stack ended", r"\b(maximum recursion depth exceeded) (?:in|while) .*$", r"\1",
        "maximum recursion depth exceeded while calling a Python object", "maximum recursion depth exceeded"),
    _rule("URL", r"https?://\S+", "<url>", "see https://pytorch.org/docs for more", "see <url> for more"),
    _rule("path",
        r"(?<![\w./])(?:[A-Za-z]:)?(?:(?:/[\w.+@~-]+){2,}/?|(?:[\w.+@~-]+/)+[\w.+@~-]+\.(?:py|cpp|cu|h|so|pt2)\b)", "<path>",
        "in /tmp/x/c1.cpp and lib/a.py, not in a/b", "in <path> and <path>, not in a/b"),
    _rule("address", _ADDRESS.pattern, "N", "<Node at 0x7f3a>", "<Node at N>"),
    _rule("hint of a size", r" ?\((?:unhinted|hint|Size-like symbols):[^()]*(?:\([^()]*\)[^()]*)*\)\.?", "",
        "u0 > 3 (unhinted: Max(1, u0) > 3).", "u0 > 3"),
    _rule("kernel", r"\b(cpp|triton|graph)_(?:\w+_)?fused\w*", r"\1_kernel", "in triton_poi_fused_add_0", "in triton_kernel"),
    _rule("key of a cache", r"\b(?=[a-z]*\d)[a-z0-9_]{24,}\b", "<key>", "c2zab3q7m5n6p7q8r9s0t1u2v is gone", "<key> is gone"),
    # a size of 0 or 1 is a constant for every program; any other size that becomes one is the program's doing
    _rule("constant size", r"\bconstant \([01]\)", "constant (zero or one)", "to be a constant (1)", "to be a constant (zero or one)"),
    _rule("shape", r"\b\d+(?:x\d+)+\b", "N", "mat1 (2x30 and 4x5)", "mat1 (N and N)"),
    _rule("suffix of a name", r"(?<=[A-Za-z])_\d+(?:_\d+)*(?=\b|_)", "", "relu_1 and view_2_3_copy", "relu and view_copy"),
    _rule("generated name",
        r"\b((?:buf|tmp|arg|op|primals|tangents|getitem|fwd|bwd|in_out_ptr|in_ptr|out_ptr|ptr|zuf|ps|ks|idx|index|xindex|yindex|rindex|acc"
        r"|tmp_acc|graph|subgraph|L|GraphModule|[a-z]))\d+(?=_|\b)", r"\1N",
        "buf12 reads s77 and conv2d", "bufN reads sN and conv2d"),
    # a number that identifies the error stays
    _rule("number", _NAMES_NO_ERROR + r"(?<![A-Za-z_\d])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[uUlL]{0,3}(?![A-Za-z_\d])", "N",
        "got -3, 2.5e-7 and 4UL, not f16: status 7", "got N, N and N, not f16: status 7"),
    _rule("list", r"((?<!\w)\(|\[)\s*(?:[suz]?N|[suz]N\*N)(?:\s*,\s*(?:[suz]?N))*\s*,?\s*([\])])", r"\1N\2",
        "shape [N, sN, N] of (N,)", "shape [N] of (N)"),
    _rule("blanks", r"\s+", " ", "a  b\tc", "a b c"),
)
ADVICE = _rule("advice on the same line", r" ?(?:For more information, run with|Set TORCH|(?<=[.!?] )Hint: ).*$", "",
    "Broken. Set TORCH_LOGS=x", "Broken.")
SPELLING = _rule("compiler's guess at a spelling", r"[;:,] did you mean .*$", "", "no 'sinus'; did you mean 'sin'?", "no 'sinus'")
PLACE = _rule("place in generated code", r" \([\w<>. ]+, line \d+\)\s*$", "", "invalid syntax (c2.py, line 7)", "invalid syntax")
_PATH, _HINT = (next(rule for rule in NORMALIZATION if rule.name == name) for name in ("path", "hint of a size"))
# fmt: on


def _collapse(text: str) -> str:
    """`Name(...)` in place of each dump of a tensor, a node or a buffer. One that does not end takes only its line."""
    out: list[str] = []
    at = 0
    found = _DUMPED.search(text)
    ends = _closed(text, found.start()) if found else {}
    while found:
        out += [text[at : found.end()], "...)"]
        end = ends.get(found.end() - 1, text.find("\n", found.end()))
        at = end if end >= 0 else len(text)
        found = _DUMPED.search(text, at)
    return "".join(out) + text[at:]


def _closed(text: str, start: int) -> dict[int, int]:
    """Maps the place of each opening parenthesis from the index `start` on to the place behind the one that closes it, if one does."""
    opened: list[int] = []
    closed: dict[int, int] = {}
    for found in _PARENTHESIS.finditer(text, start):
        if found[0] == "(":
            opened.append(found.start())
        elif opened:
            closed[opened.pop()] = found.end()
    return closed


def normalize(text: str) -> str:
    """`text` as one line that does not depend on sizes, counters, places or generated names."""
    text = text[:_MAX_LINE].translate(_QUOTES)
    for _ in range(_MOST_PASSES):
        # a replacement may make another rule match; a message that is already normal stays as it is
        before, text = text, _collapse(text)
        for rule in NORMALIZATION:
            text = rule.apply(text)
        text = _SET.sub(lambda found: f"{{{', '.join(sorted(found[1].split(', ')))}}}", text).strip()
        if text == before:
            break
    return text


def _peel_once(name: str, message: str) -> tuple[str, str] | None:
    imported = _IMPORTED.match(message)
    if imported is not None:  # generated code that Python itself rejects: the reason is on the next line
        return imported[1], PLACE.apply(imported[2])
    if name not in WRAPPER_CLASSES:
        return None
    if name == "TorchRuntimeError":
        got = _GOT.search(message[: _MAX_READ // 2])
        if got is None:
            return None
        return got[1], got[2].strip("'\"").replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')
    backend = _BACKEND.match(message)
    rest = message[backend.end() :] if backend else message
    inner = _INNER.match(rest)
    own = inner[1].rpartition(".")[2] if inner else ""
    return (own, rest[inner.end() :]) if inner and own[:1].isupper() else None


def peel(name: str, message: str) -> tuple[tuple[str, ...], str]:
    """The classes named in the `message` of an exception of class `name`, which may quote others, outermost first, and the innermost one's
    own message."""
    names = [name] if name else []
    for _ in range(8):
        inner = _peel_once(name, message)
        if inner is None:
            break
        name, message = inner
        names.append(name)
    return tuple(names), message


def _cpp(message: str) -> str:
    diagnostics = (found for found in _CPP_DIAGNOSTIC.finditer(message) if not _LINKER_FAILED.match(found[1]))
    found = next(diagnostics, None) or _LINKER.search(message) or _CPP_OUTPUT.search(message)
    return SPELLING.apply(found[1].translate(_QUOTES)) if found else "C++ compile error"


def essence(name: str, message: str) -> str:
    """The normalized `message` of an exception of class `name`: at most `MAX_MESSAGE` characters, up to three lines.

    The first line that says anything; for a graph break also its explanation; for a failed lowering, the operator; for code that had to be
    compiled again, the guard.
    """
    if name in CPP_ERRORS:
        return normalize(_cpp(message))[:MAX_MESSAGE]
    message = message[:_MAX_READ]
    parts = [normalize(line) for line in _headline(name, message)]
    explanation = _EXPLANATION.search(_said(message))
    if explanation:
        parts.append(normalize(explanation[1]))
    guard = _GUARD.search(message)
    if guard:  # without one, nothing had been compiled before
        parts.append("guard: " + normalize(_GUARDED.sub("tensor ", guard[1].partition("  #")[0].rstrip())))
    target = _TARGET.search(message)
    if target:
        parts.append("target: " + " ".join(_ADDRESS.sub("N", target[1]).split()))  # conv1d is not conv2d: its digits stay
    return "\n".join(part for part in parts if part)[:MAX_MESSAGE]


def words(name: str, message: str) -> str:
    """What people are shown of the `message` of an exception of class `name`: the first line of its essence as it was printed, with what
    follows its colon; at most `MAX_WORDS` characters, with only the file name of each path."""
    said = _cpp(message) if name in CPP_ERRORS else told(_lines(name, message[:_MAX_READ]))
    short = _PATH.pattern.sub(
        lambda path: path[0].rstrip("/").rpartition("/")[2], _ADDRESS.sub("0x...", _HINT.apply(_collapse(said[:_MAX_LINE])))
    )
    return " ".join(short.split())[:MAX_WORDS]


def _said(message: str) -> str:
    """The message without the parts that repeat the program or give advice."""
    tail = _TAIL.search(message, 1)  # the beginning of a message always counts
    return ADVICE.apply(_collapse(message[: tail.start()] if tail else message))


def told(lines: Sequence[str]) -> str:
    """The first of the `lines` of a message. If that ends in a colon, the next one too, with the rest of the list that it begins; if it
    ends in an opening bracket, all up to the one that closes it."""
    lines = _bracketed(lines)
    said = list(lines[:1])
    while len(said) < min(len(lines), _MOST_COLONS + 1) and said[-1].rstrip().endswith(_GOES_ON):
        said.append(lines[len(said)])
    before, last = said[:-1], said[-1:]
    lead = _leads(last[0]) if before else ""
    if lead:
        last += takewhile(lambda line: _leads(line) == lead, lines[len(said) : len(said) + _MOST_LISTED])
    items = [line[len(lead) :].strip() for line in last]
    return " ".join([*(line.strip() for line in before), "; ".join([*(item.rstrip(".,;") for item in items[:-1]), *items[-1:]])])


def _bracketed(lines: Sequence[str]) -> Sequence[str]:
    """The `lines`, with the first one whole if it ends in an opening bracket that a later one closes."""
    if not lines or not lines[0].rstrip().endswith(tuple(_OPENS)):
        return lines
    depth = 0
    for count, line in enumerate(lines[:_MOST_BRACKETED], 1):
        depth += sum((letter in _OPENS) - (letter in _CLOSES) for letter in line)
        if depth <= 0:
            return [" ".join(part.strip() for part in lines[:count]), *lines[count:]]
    return lines


def _leads(line: str) -> str:
    """What comes before the words of a line: its indentation, and the mark of a list."""
    found = _LISTED.match(line)
    return found[0] if found else ""


def _lines(name: str, message: str) -> list[str]:
    """The lines of a message that say what is wrong."""
    lines = [line for line in _said(message).split("\n") if line.strip() and not _TARGET.match(line) and not _EXPLANATION.match(line)]
    if name in _TRITON_ERRORS:
        return lines[-1:]  # Triton quotes the kernel's source first
    return list(dropwhile(lambda line: _says_nothing(line) and not line.rstrip().endswith(tuple(_OPENS)), lines)) or lines[:1]


def _says_nothing(line: str) -> bool:
    """Whether a line consists of signs, like one that underlines another."""
    return not any(map(str.isalnum, line))


def _headline(name: str, message: str) -> list[str]:
    """The first line of a message that says anything, together with the next one if it ends in a colon."""
    lines = _lines(name, message)
    lines = list(dropwhile(_says_nothing, lines)) or lines[:1]  # a bracket names no bug
    return lines[: 2 if lines and lines[0].rstrip().endswith(_GOES_ON) else 1]
